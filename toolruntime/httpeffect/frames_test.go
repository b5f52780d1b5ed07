package httpeffect_test

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// The frames of HTTP/2, as in RFC 9113.
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7

	flagAck, flagEndStream, flagEndHeaders = 1, 1, 4
)

func writeFrame(w io.Writer, kind, flags byte, stream uint32, payload []byte) {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = append(head, flags)
	w.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}

// An h2answer answers a stream; whole is false when only its header has come. It
// returns true to end the connection.
type h2answer func(w io.Writer, stream uint32, whole bool) bool

// sayFrame answers a whole request with a status alone.
func sayFrame(status int) h2answer {
	return func(w io.Writer, stream uint32, whole bool) bool {
		if whole {
			// A literal header without indexing, with the static name :status.
			writeFrame(w, frameHeaders, flagEndStream|flagEndHeaders, stream, fmt.Appendf([]byte{8, 3}, "%d", status))
		}
		return false
	}
}

func reset(code uint32, early bool) h2answer {
	return func(w io.Writer, stream uint32, whole bool) bool {
		if whole != early {
			writeFrame(w, frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code))
		}
		return false
	}
}

// goAway says that nothing after the stream last(stream) was looked at.
func goAway(code uint32, last func(uint32) uint32, end bool) h2answer {
	return func(w io.Writer, stream uint32, whole bool) bool {
		if whole {
			payload := binary.BigEndian.AppendUint32(nil, last(stream))
			writeFrame(w, frameGoAway, 0, 0, binary.BigEndian.AppendUint32(payload, code))
		}
		return whole && end
	}
}

// serveFrames speaks HTTP/2 by hand: the first warm requests of all are answered
// with 204, the others by answer. It counts the requests that arrive, whether or
// not they are whole.
func serveFrames(t *testing.T, warm int64, answer h2answer) (client, *atomic.Int64) {
	t.Helper()
	requests := new(atomic.Int64)
	server := startFrames(func(conn net.Conn) { frames(conn, requests, warm, answer) })
	t.Cleanup(server.Close)
	c := clientOf(server.URL)
	c.HTTP = server.Client()
	return c, requests
}

// startFrames starts a server that has serve speak HTTP/2.
func startFrames(serve func(net.Conn)) *httptest.Server {
	server := httptest.NewUnstartedServer(nil)
	server.EnableHTTP2 = true
	server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) { serve(conn) },
	}
	server.StartTLS()
	return server
}

func frames(conn net.Conn, requests *atomic.Int64, warm int64, answer h2answer) {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	writeFrame(conn, frameSettings, 0, 0, nil)
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head)>>8)); err != nil {
			return
		}
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		reply := answer
		switch {
		case kind == frameSettings && flags&flagAck == 0:
			writeFrame(conn, frameSettings, flagAck, 0, nil)
			continue
		case kind == frameHeaders:
			requests.Add(1)
		case kind != frameData:
			continue
		}
		if requests.Load() <= warm {
			reply = sayFrame(http.StatusNoContent)
		}
		if kind == frameHeaders && reply(conn, stream, false) {
			return
		}
		if flags&flagEndStream != 0 && reply(conn, stream, true) {
			return
		}
	}
}
