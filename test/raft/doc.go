// Package raft holds no program: its tests show that the commit log can be the
// log of hashicorp/raft, so that a message's body is written once per replica,
// before the log's format freezes. Three nodes run in one process, each with a
// disk of its own that loses what was not synced, and talk over loopback TCP.
//
//	proposer ─► raft.ApplyLog ─► store.StoreLogs ─► log.Append, log.Sync
//	                  │                                   ▲
//	                  └── TCP ─► the others' StoreLogs ───┘ (theirs)
//
// What was decided is docs/adr/0002-log-is-the-raft-log.md.
package raft
