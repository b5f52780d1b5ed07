package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	restate "github.com/restatedev/sdk-go"
	restateserver "github.com/restatedev/sdk-go/server"
)

// restatePackage is where the server is got from if it is not installed.
const restatePackage = "@restatedev/restate-server@1.7.12"

// A restatePeer is a server of Restate's with handlers in this process. It has a store
// of its own.
type restatePeer struct{ admin, ingress *http.Client }

// startRestate starts a server in the bed. It has one partition, as the ledger has one
// file or one database, and syncs its log before it answers.
func startRestate(ctx context.Context, b *bed, binary string) (_ *restatePeer, err error) {
	folder := b.file("restate")
	log, err := os.Create(b.file("restate.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(binary, "--base-dir", folder, "--node-name", "bench", "--listen-mode", "unix", "--default-num-partitions", "1", "--no-logo")
	cmd.Env = append(os.Environ(), "RESTATE_DISABLE_TELEMETRY=true", "RESTATE_LOG_FILTER=warn", "RESTATE_LOG_SERVER__ROCKSDB_DISABLE_WAL_FSYNC=false")
	cmd.Stdout, cmd.Stderr = log, log
	// It must not outlive a run that is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.later(func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil
	})
	defer func() {
		if err != nil {
			said, _ := os.ReadFile(log.Name())
			err = fmt.Errorf("%w\n%s", err, said[max(len(said)-2000, 0):])
		}
	}()
	if b.watch.server, err = findProcess(cmd.Process.Pid); err != nil {
		return nil, err
	}
	address, err := serveRestate(b)
	if err != nil {
		return nil, err
	}
	p := &restatePeer{overSocket(b, filepath.Join(folder, "bench", "admin.sock")), overSocket(b, filepath.Join(folder, "bench", "ingress.sock"))}
	if err := p.register(ctx, address); err != nil {
		return nil, err
	}
	// A server that has just started, and the handler's library, are slow at first.
	return p, together(restateWarm, 10*restateWarm, func(i int64) error { return p.draft(fmt.Sprint("warm_", i)) })
}

// restateWarm is how many callers warm a server up.
const restateWarm = 64

// findRestate gives the server that is installed, or one that npm puts into the folder,
// and its version.
func findRestate(ctx context.Context, folder string) (binary, version string, err error) {
	if binary, err = exec.LookPath("restate-server"); err != nil {
		if binary, err = installRestate(ctx, folder); err != nil {
			return "", "", err
		}
	}
	text, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("%s --version: %w", binary, err)
	}
	_, version, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
	return binary, version, nil
}

func installRestate(ctx context.Context, folder string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("neither restate-server nor npm is installed")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, npm, "install", "--prefix", folder, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", restatePackage)
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s: %w\n%s", restatePackage, err, out)
	}
	found, _ := filepath.Glob(filepath.Join(folder, "node_modules", "@restatedev", "restate-server-*", "bin", "restate-server"))
	if len(found) == 0 {
		return "", fmt.Errorf("npm has no %s for this machine", restatePackage)
	}
	return found[0], nil
}

func overSocket(b *bed, path string) *http.Client {
	transport := &http.Transport{
		MaxIdleConnsPerHost: 1024,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}
	b.later(func() error { transport.CloseIdleConnections(); return nil })
	return &http.Client{Transport: transport}
}

// serveRestate serves the handler: one step, whose result is recorded.
func serveRestate(b *bed) (address string, err error) {
	draft := restate.NewServiceHandler(func(ctx restate.Context, _ json.RawMessage) (json.RawMessage, error) {
		return restate.Run(ctx, func(restate.RunContext) (json.RawMessage, error) { return json.RawMessage(refundResult), nil }, restate.WithName("effect"))
	})
	handler, err := restateserver.NewRestate().WithLogger(slog.DiscardHandler, true).Bind(restate.NewService("refunds").Handler("draft", draft)).Handler()
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: handler, Protocols: &protocols, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = s.Serve(listener) }()
	b.later(s.Close)
	return "http://" + listener.Addr().String(), nil
}

// register has the server know the handler, as soon as it answers, and waits until a
// first call has been carried out.
func (p *restatePeer) register(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := post(ctx, p.admin, "/deployments", "", `{"uri":"`+address+`"}`, http.StatusCreated)
		if err == nil {
			_, err = p.call(ctx, "/refunds/draft", "first", http.StatusOK)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *restatePeer) call(ctx context.Context, path, key string, want int) ([]byte, error) {
	return post(ctx, p.ingress, path, key, refundArguments, want)
}

func post(ctx context.Context, c *http.Client, path, key, body string, want int) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://restate"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != want {
		err = fmt.Errorf("restate answered %d: %.200s", answer.StatusCode, said)
	}
	return said, err
}

// restateStored is how many calls have ended before they are repeated.
const restateStored = 200

func (p *restatePeer) draft(key string) error {
	said, err := p.call(context.Background(), "/refunds/draft", key, http.StatusOK)
	if err == nil && !bytes.Equal(said, []byte(refundResult)) {
		err = fmt.Errorf("restate answered %.200s", said)
	}
	return err
}

// restateScenarios are of a server that findRestate has found.
func restateScenarios(binary string) []scenario {
	var all []scenario
	scene := func(name string, callers int, ready func(*restatePeer) (load, error)) {
		all = append(all, scenario{"restate", name, ownStore, callers, func(ctx context.Context, b *bed) (load, error) {
			p, err := startRestate(ctx, b, binary)
			if err != nil {
				return load{}, err
			}
			return ready(p)
		}})
	}
	for _, callers := range []int{1, 64, 256} {
		scene("fresh", callers, func(p *restatePeer) (load, error) {
			var n atomic.Int64
			return load{do: func(context.Context, int) error { return p.draft(call(n.Add(1)).IdempotencyKey) }}, nil
		})
	}
	for _, callers := range []int{1, 64} {
		scene("submit", callers, func(p *restatePeer) (load, error) {
			var n atomic.Int64
			return load{do: func(context.Context, int) error { // for tomorrow: nobody carries it out
				_, err := p.call(context.Background(), "/refunds/draft/send?delay=1d", call(n.Add(1)).IdempotencyKey, http.StatusAccepted)
				return err
			}}, nil
		})
		scene("replay", callers, func(p *restatePeer) (load, error) {
			again := func(i int64) error { return p.draft(call(i % restateStored).IdempotencyKey) }
			var n atomic.Int64
			return load{do: func(context.Context, int) error { return again(n.Add(1)) }}, together(16, restateStored, again)
		})
	}
	return all
}
