package ledger

import (
	"context"
	"strings"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A lane is what workers take turns between: the operations of a tenant that were
// accepted by one version of a tool. A version is a tool's name and, after a line
// break, its effect kind with a digest of its revisions; for operations from
// before effect kinds were kept it is the name alone, and whether a worker knows
// theirs is decided when they are claimed. A lane is a version, a line break and a
// tenant, so that one comparison leads past all lanes of a version.

// laneOf is the lane of an operation's event.
func laneOf(o *dbgen.Operation) string {
	version := LanePart(o.ToolName)
	if o.EffectKind != "" {
		version = VersionOf(contractOf(o), o.EffectKind)
	}
	return laneIn(version, o.TenantID)
}

func laneIn(version, tenant string) string { return version + "\n" + LanePart(tenant) }

// VersionOf names a tool as operations are accepted by it.
func VersionOf(c toolresult.Contract, kind string) string {
	revisions := ""
	for _, r := range [...]string{c.InputSchema, c.OutputSchema, c.Effect, c.Handler, c.Producer, c.Policy} {
		revisions += LanePart(r) + "\n"
	}
	return LanePart(c.Name) + "\n" + kind + "-" + canonjson.Sum([]byte(revisions))[:16]
}

// LanePart writes a name so that it holds no line break.
func LanePart(name string) string {
	if !strings.ContainsAny(name, "\n\\") {
		return name
	}
	return strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(name)
}

// versionIn is the version whose lane it is.
func versionIn(lane string) string {
	if i := strings.LastIndexByte(lane, '\n'); i >= 0 {
		return lane[:i]
	}
	return lane
}

// ToolOf is the name of the tool whose lane or version it is.
func ToolOf(lane string) string {
	tool, _, _ := strings.Cut(lane, "\n")
	if !strings.Contains(tool, "\\") {
		return tool
	}
	return strings.NewReplacer(`\\`, "\\", `\n`, "\n").Replace(tool)
}

// past is what sorts behind all lanes that begin with a tool or a version, and
// before all others that do.
func past(version string) string { return version + "\v" }

// A round is what was found of the lanes from one on and around.
type round struct {
	lanes   []string // of which operations may be claimed
	foreign []string // versions that nobody here knows, and that have open events
	end     string   // where to go on, or "" when all were looked at
}

// lanesAfter looks for lanes with open events, from the one after cursor on and
// around, at the most so many. What is paused, or what nobody here knows, is one
// step, however many lanes there are of it.
func lanesAfter(ctx context.Context, q dbgen.Querier, cursor string, paused map[string]bool, known func(version string) bool) (r round, err error) {
	at, wrapped := cursor, false
	for range maxLanes {
		lane, err := q.NextLane(ctx, at)
		there, err := found(err)
		version := versionIn(lane)
		tool, _, _ := strings.Cut(lane, "\n")
		switch {
		case err != nil:
			return r, err
		case there && wrapped && lane > cursor, !there && (wrapped || cursor == ""):
			return r, nil
		case !there:
			at, wrapped = "", true
		case paused[ToolOf(lane)]:
			at = past(tool)
		case !known(version):
			r.foreign = append(r.foreign, version)
			at = past(version)
		default:
			r.lanes = append(r.lanes, lane)
			at = lane
		}
	}
	r.end = at
	return r, nil
}
