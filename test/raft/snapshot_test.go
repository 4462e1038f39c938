package raft

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

const (
	snapshotName = "SNAPSHOT"
	firstFolder  = "log"
)

// A manifest is all that is kept of a snapshot: raft's metadata, the machine's
// state, and which folder holds the log. No message is in it.
type manifest struct {
	Meta   raft.SnapshotMeta
	State  state
	Folder string
}

// A heading begins a snapshot's stream. Behind it follow the replicated parts of
// the entries from First, with which the snapshot's segment begins, to the
// snapshot's own: a log begins with a segment, so this is what a node without
// any needs to go on at the position where the others do.
type heading struct {
	manifest
	Base     uint64 // position of the segment
	First    uint64 // index of its first entry
	Position uint64 // of the snapshot's last entry
}

// snapshots keep the newest manifest in one file, replaced as a whole.
type snapshots struct {
	disk    *disk
	options log.Options
	store   *store

	mu     sync.Mutex
	newest *manifest
}

var _ raft.SnapshotStore = (*snapshots)(nil)

func openSnapshots(d *disk, o log.Options) (*snapshots, error) {
	s := &snapshots{disk: d, options: o}
	raw, err := d.read(d.path(snapshotName))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.newest = &manifest{}
	if err := json.Unmarshal(raw, s.newest); err != nil {
		return nil, fmt.Errorf("%s: %w", snapshotName, err)
	}
	return s, nil
}

// last is the newest manifest, or one of nothing.
func (s *snapshots) last() manifest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil {
		return manifest{Folder: firstFolder}
	}
	return *s.newest
}

func (s *snapshots) index() uint64 { return s.last().Meta.Index }

func (s *snapshots) publish(m *manifest) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := s.disk.replace(snapshotName, raw); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = m
	return nil
}

// List gives the newest snapshot, if any.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	m := s.last()
	if m.Meta.Index == 0 {
		return nil, nil
	}
	return []*raft.SnapshotMeta{&m.Meta}, nil
}

// Open makes the stream: the heading, and entries out of the log.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	m := s.last()
	if m.Meta.ID != id {
		return nil, nil, fmt.Errorf("snapshot %q: %w", id, os.ErrNotExist)
	}
	l := s.store.current()
	pos, _, err := l.Get(m.Meta.Index)
	if err != nil {
		return nil, nil, err
	}
	h := heading{manifest: m, Position: pos}
	for _, segment := range l.Segments() {
		if segment.Base <= pos {
			h.Base, h.First = segment.Base, segment.First
		}
	}
	var stream bytes.Buffer
	if err := json.NewEncoder(&stream).Encode(&h); err != nil {
		return nil, nil, err
	}
	for index := h.First; index <= m.Meta.Index; index++ {
		_, b, err := l.Get(index)
		if err != nil {
			return nil, nil, err
		}
		raw, err := record.AppendBatch(nil, &b)
		if err != nil {
			return nil, nil, err
		}
		stream.Write(raw)
	}
	m.Meta.Size = int64(stream.Len())
	return &m.Meta, io.NopCloser(&stream), nil
}

// Create begins a snapshot, of this node or of another.
//
//nolint:revive // raft's interface
func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64, members raft.Configuration,
	membersIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	return &sink{snapshots: s, manifest: manifest{Meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: members, ConfigurationIndex: membersIndex,
	}, Folder: s.last().Folder}}, nil
}

// A sink takes one snapshot.
type sink struct {
	snapshots *snapshots
	manifest  manifest
	own       bool // of this node's machine
	closed    bool
	stream    bytes.Buffer // of another's
}

// ID names the snapshot.
func (k *sink) ID() string { return k.manifest.Meta.ID }

// Write takes a part of another node's stream.
func (k *sink) Write(p []byte) (int, error) { return k.stream.Write(p) }

// Cancel gives the snapshot up.
func (k *sink) Cancel() error {
	k.closed = true
	return nil
}

// Close makes the snapshot the newest one, durably. One of another node brings
// the log to where it ends first: a crash before the manifest has its name
// leaves the node as it was, or with committed entries more.
func (k *sink) Close() error {
	if k.closed {
		return nil
	}
	k.closed = true
	if k.own {
		return k.snapshots.publish(&k.manifest)
	}
	k.snapshots.store.appender.Lock()
	defer k.snapshots.store.appender.Unlock()
	l, err := k.adopt()
	if err == nil {
		err = k.snapshots.publish(&k.manifest)
	}
	if err != nil {
		return k.snapshots.store.fail(fmt.Errorf("snapshot %s: %w", k.ID(), err))
	}
	k.snapshots.store.swap(l)
	return nil
}

// adopt brings the log to the snapshot's end and gives it. It is the log that is
// open if that reaches the entries of the stream; then all that it holds stays.
// Otherwise it is another one in a folder of its own.
func (k *sink) adopt() (*log.Log, error) {
	var h heading
	line, frames, _ := bytes.Cut(k.stream.Bytes(), []byte("\n"))
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, err
	}
	if h.Meta.Index != k.manifest.Meta.Index {
		return nil, fmt.Errorf("stream of snapshot %s", h.Meta.ID)
	}
	k.manifest.State = h.State
	entries, err := batches(frames)
	if err != nil {
		return nil, err
	}
	l := k.snapshots.store.current()
	if l.LastIndex()+1 < h.First || l.FirstIndex() > h.Meta.Index+1 {
		k.manifest.Folder = fmt.Sprintf("log-%d", h.Meta.Index)
		if l, err = k.snapshots.begin(k.manifest.Folder, &h); err != nil {
			return nil, err
		}
	}
	if err := match(l, entries); err != nil {
		return nil, err
	}
	pos, _, err := l.Get(h.Meta.Index)
	if err == nil && pos != h.Position {
		err = fmt.Errorf("entry %d at position %d, in the group at %d", h.Meta.Index, pos, h.Position)
	}
	return l, err
}

// begin makes a log that begins with the heading's segment.
func (s *snapshots) begin(folder string, h *heading) (*log.Log, error) {
	o := s.options
	o.Dir = s.disk.path(folder)
	o.Origin = log.Start{Position: h.Base, Index: h.First - 1}
	if h.Base == 0 {
		o.Origin = log.Start{}
	}
	// What an earlier attempt left has no manifest.
	if err := s.disk.RemoveAll(o.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return log.Open(o, log.Start{})
}

// batches reads replicated parts, one after the other.
func batches(raw []byte) ([]*record.Batch, error) {
	var list []*record.Batch
	for len(raw) > 0 {
		b, n, err := record.DecodeBatch(raw)
		if err != nil {
			return nil, err
		}
		list, raw = append(list, &b), raw[n:]
	}
	return list, nil
}

// match makes the log hold entries, durably, as raft does with what a leader
// sends: equal ones stay, the first other one takes all behind it away.
func match(l *log.Log, entries []*record.Batch) error {
	for len(entries) > 0 && entries[0].Index <= l.LastIndex() {
		if entries[0].Index >= l.FirstIndex() {
			_, b, err := l.Get(entries[0].Index)
			if err != nil {
				return err
			}
			if b.Term != entries[0].Term {
				if err := l.TruncateSuffix(entries[0].Index); err != nil {
					return err
				}
				break
			}
		}
		entries = entries[1:]
	}
	if err := l.Append(entries, make([]uint64, len(entries))); err != nil {
		return err
	}
	return l.Sync()
}
