package archtest

import (
	"fmt"
	"strconv"
	"strings"
)

const modulePath = "github.com/duemq/duemq"

// floors is the plan of the house, from the ground up. A room imports only from floors below its own, so rooms that
// share a floor do not see each other, and a reader who knows the floors knows who can call whom. What else a room
// must not touch (files, sockets, libraries) stands in .golangci.yml.
var floors = [][]string{
	{"internal/record"},
	{"internal/clock", "internal/fs", "internal/backup"},
	{"internal/log"},
	{"internal/index"},
	{"wheel"},
	{"internal/timeline"},
	{"internal/queue"},
	{"internal/group"},
	{"internal/count", "internal/dedupe", "internal/keys"},
	{"internal/engine"},
	{"internal/broker"},
	{"internal/remoting", "internal/grpcapi", "internal/httpapi"},
	{"internal/nameserver", "internal/console"},
	{"."},
	{"duemqtest", "internal/config", "internal/bench"},
	{"internal/cli"},
	{"cmd/duemq", "internal/archtest", "test"},
}

// upwardImports finds imports that do not point down, and rooms that nobody put on the plan. Test files may look
// up: a room is also tested by what stands on it.
func upwardImports(r *Repo) []Violation {
	floorOf := map[string]int{}
	for floor, rooms := range floors {
		for _, room := range rooms {
			floorOf[room] = floor
		}
	}
	var found []Violation
	for _, s := range r.sources {
		from := roomOf(s.dir)
		if from == "tools" { // a module of its own
			continue
		}
		floor, planned := floorOf[from]
		if !planned {
			text := fmt.Sprintf("room %s is not on the plan in internal/archtest/floors.go", from)
			found = append(found, Violation{Path: s.path, Text: text})
		}
		if !planned || s.test {
			continue
		}
		for _, spec := range s.file.Imports {
			to, ours := importedRoom(spec.Path.Value)
			if !ours || to == from {
				continue
			}
			if below, planned := floorOf[to]; !planned || below >= floor {
				text := fmt.Sprintf("%s (floor %d) imports %s (floor %d): imports point down only", from, floor, to, below)
				found = append(found, Violation{Path: s.path, Line: r.line(spec.Pos()), Text: text})
			}
		}
	}
	return found
}

// importedRoom returns the room that an import, quoted as in the source, comes from, and whether it is one of ours.
func importedRoom(quoted string) (room string, ours bool) {
	name, err := strconv.Unquote(quoted)
	if err != nil {
		return "", false
	}
	if name == modulePath {
		return ".", true
	}
	dir, ours := strings.CutPrefix(name, modulePath+"/")
	return roomOf(dir), ours
}

// roomOf returns the room that a directory belongs to: below internal and cmd each directory is a room, elsewhere
// each directory of the root.
func roomOf(dir string) string {
	first, rest, _ := strings.Cut(dir, "/")
	if first != "internal" && first != "cmd" {
		return first
	}
	second, _, _ := strings.Cut(rest, "/")
	return first + "/" + second
}
