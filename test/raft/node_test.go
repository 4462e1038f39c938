package raft

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/log"
)

// Time-outs are real and short, for there is nothing but waiting in an election.
const (
	heartbeat  = 200 * time.Millisecond
	lease      = 100 * time.Millisecond
	commitTime = 5 * time.Millisecond
	patience   = 30 * time.Second // for anything that must happen
)

// A bell rings whenever anything happened that somebody may wait for.
type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

func newBell() *bell { return &bell{next: make(chan struct{})} }

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.next)
	b.next = make(chan struct{})
}

func (b *bell) listen() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next
}

// await waits until happened, looking again at every ring.
func (b *bell) await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		rung := b.listen()
		if happened() {
			return
		}
		select {
		case <-rung:
		case <-deadline:
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// A node is one life of one member: from a start to a stop or a crash.
type node struct {
	id        raft.ServerID
	disk      *disk
	recovered uint64 // last entry of the log when this life began
	stable    *stable
	shots     *snapshots
	store     *store
	machine   *machine
	raft      *raft.Raft
	trans     transport
	done      sync.WaitGroup
	finish    func() error  // ends raft, once
	end       chan struct{} // closed when raft has ended
	stopped   bool
}

func (n *node) address() raft.ServerAddress { return raft.ServerAddress(n.id) }

// storeID is the id of a node's store. It begins every local checksum, so that
// the bytes around the batches differ from node to node.
func storeID(id raft.ServerID) (s [16]byte) {
	copy(s[:], "raft test "+id)
	return s
}

func logOptions(d *disk, id raft.ServerID, folder string) log.Options {
	return log.Options{
		FS: d, Dir: d.path(folder), StoreID: storeID(id), SegmentBytes: log.MinSegmentBytes, Preallocate: d.mem == nil,
		Bugs: d.bugs,
	}
}

// openNode opens what a node keeps, without raft.
func openNode(d *disk, id raft.ServerID, b *bell) (*node, error) {
	n := &node{id: id, disk: d, end: make(chan struct{})}
	err := d.make()
	if err == nil {
		n.stable, err = openStable(d)
	}
	if err == nil {
		n.shots, err = openSnapshots(d, logOptions(d, id, firstFolder))
	}
	if err != nil {
		return nil, err
	}
	m := n.shots.last()
	if err := removeFolders(d, m.Folder); err != nil {
		return nil, err
	}
	l, err := log.Open(logOptions(d, id, m.Folder), log.Start{})
	if err != nil {
		return nil, err
	}
	if n.store, err = newStore(l, n.stable, d.power, b, n.shots.index); err != nil {
		return nil, err
	}
	n.recovered = l.LastIndex()
	n.shots.store = n.store
	n.machine = &machine{bell: b, store: n.store, log: l, state: m.State}
	return n, nil
}

// removeFolders removes the folders of logs that no manifest names.
func removeFolders(d *disk, keep string) error {
	names, err := d.List(d.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if info, err := d.Stat(d.path(name)); err == nil && info.IsDir() && name != keep {
			if err := d.RemoveAll(d.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// run starts raft on what the node keeps. It bootstraps a group of the members
// if there are any.
func (n *node) run(t *testing.T, net *network, b *bell, members []raft.Server) error {
	conf := raft.DefaultConfig()
	conf.LocalID = n.id
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = heartbeat, heartbeat, lease
	conf.CommitTimeout = commitTime
	conf.BatchApplyCh = true
	conf.TrailingLogs = 0 // raft's mark moves as far as it may; what is kept is not raft's business
	conf.SnapshotInterval, conf.SnapshotThreshold = time.Hour, 1<<40
	conf.NoSnapshotRestoreOnStart = true
	conf.NoLegacyTelemetry = true
	conf.LogLevel, conf.LogOutput = "WARN", t.Output()

	p, err := net.listen(n.address())
	if err != nil {
		return err
	}
	n.trans = transport{raft.NewNetworkTransport(p, 2, heartbeat, io.Discard)}
	if members != nil {
		err = raft.BootstrapCluster(conf, n.store, n.stable, n.shots, n.trans, raft.Configuration{Servers: members})
		if err != nil {
			return fmt.Errorf("bootstrap: %w", err)
		}
	}
	if n.raft, err = raft.NewRaft(conf, n.machine, n.store, n.stable, n.shots, n.trans); err != nil {
		return errors.Join(err, n.trans.Close())
	}
	n.finish = sync.OnceValue(func() error {
		defer close(n.end)
		return errors.Join(n.trans.Close(), n.raft.Shutdown().Error())
	})
	n.watch(b)
	return nil
}

// watch rings the bell when raft's state changes, and ends raft when the store is
// poisoned.
func (n *node) watch(b *bell) {
	seen := make(chan raft.Observation, 1)
	n.raft.RegisterObserver(raft.NewObserver(seen, false, nil))
	n.done.Go(func() {
		defer b.ring()
		for {
			select {
			case <-seen:
				b.ring()
			case <-n.store.failed:
				_ = n.finish() // halt has the error
				return
			case <-n.end:
				return
			}
		}
	})
}

// A transport does not pipeline. In v1.8.0 a leader whose follower refuses one of
// two requests in flight may never send to that follower again, nor stop itself
// (hashicorp/raft issue 612); heartbeats go on, so that nobody notices. These
// tests met it when a store failed. MaxRPCsInFlight 1 is the same.
type transport struct{ *raft.NetworkTransport }

// AppendEntriesPipeline says that there is none.
func (transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

var errEnded = errors.New("the node ended without an answer")

// answer waits for a future. Raft forgets those that reach it while it ends: with
// BatchApplyCh they lie in a channel that nobody reads any more, and Error would
// wait for ever.
func (n *node) answer(f raft.Future) error {
	answer := make(chan error, 1)
	go func() { answer <- f.Error() }()
	select {
	case err := <-answer:
		return err
	case <-n.end:
	}
	select {
	case err := <-answer:
		return err
	default:
		return errEnded
	}
}

// halt ends raft and leaves the log open.
func (n *node) halt() error {
	if n.raft == nil {
		return nil
	}
	err := n.finish()
	n.done.Wait()
	return err
}

// stop ends a life. What it does to the disk after a power cut is forgotten.
func (n *node) stop() error {
	if n.stopped {
		return nil
	}
	n.stopped = true
	err := n.halt()
	if n.disk.power.gone() != nil {
		// Nobody closes a log when the power goes.
		n.disk.Inject(fs.Fault{At: 1, Forever: true})
	}
	for _, l := range append(n.store.replaced(), n.store.current()) {
		closing := l.Close()
		if n.store.usable() == nil && n.disk.power.gone() == nil {
			err = errors.Join(err, closing)
		}
	}
	return err
}
