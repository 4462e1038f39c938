package raft

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A network joins nodes over loopback TCP under names that outlive a node's
// port, and parts them.
type network struct {
	mu    sync.Mutex
	ports map[raft.ServerAddress]*port
	apart map[raft.ServerAddress]bool
}

func newNetwork() *network {
	return &network{ports: map[raft.ServerAddress]*port{}, apart: map[raft.ServerAddress]bool{}}
}

// A port is one life of a node on the network.
type port struct {
	net.Listener
	network *network
	name    raft.ServerAddress

	mu     sync.Mutex
	conns  map[net.Conn]raft.ServerAddress // who is at the other end, if known
	closed bool
}

var _ raft.StreamLayer = (*port)(nil)

var errApart = errors.New("no way there")

// listen gives a node a port in the place of its last one.
func (n *network) listen(name raft.ServerAddress) (*port, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &port{Listener: listener, network: n, name: name, conns: map[net.Conn]raft.ServerAddress{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[name] = p
	return p, nil
}

// Addr is the name, so that it can stand in raft's configuration.
func (p *port) Addr() net.Addr { return address(p.name) }

type address raft.ServerAddress

// Network is part of net.Addr.
func (a address) Network() string { return "tcp" }

// String is the name.
func (a address) String() string { return string(a) }

// to is where a name can be reached from here now.
func (n *network) to(from, name raft.ServerAddress) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, ok := n.ports[name]
	if !ok || n.apart[from] || n.apart[name] {
		return "", errApart
	}
	return p.Listener.Addr().String(), nil
}

// Dial reaches another node.
func (p *port) Dial(name raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	to, err := p.network.to(p.name, name)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", to, timeout)
	if err != nil {
		return nil, err
	}
	if err := p.keep(conn, name); err != nil {
		return nil, err
	}
	// The two may have been parted meanwhile.
	if _, err := p.network.to(p.name, name); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Accept takes a connection in.
func (p *port) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn, p.keep(conn, "")
}

// keep remembers a connection, so that it can be cut.
func (p *port) keep(conn net.Conn, name raft.ServerAddress) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.Join(errApart, conn.Close())
	}
	p.conns[conn] = name
	return nil
}

// hangUp cuts the connections to one node, or all.
func (p *port) hangUp(name raft.ServerAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn, other := range p.conns {
		if name == "" || other == name {
			_ = conn.Close()
			delete(p.conns, conn)
		}
	}
}

// Close ends the port and all its connections.
func (p *port) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.hangUp("")
	return p.Listener.Close()
}

// part takes a node off the network; its connections break.
func (n *network) part(name raft.ServerAddress) {
	n.mu.Lock()
	n.apart[name] = true
	var ports []*port
	for _, p := range n.ports {
		ports = append(ports, p)
	}
	n.mu.Unlock()
	for _, p := range ports {
		if p.name == name {
			p.hangUp("")
			continue
		}
		p.hangUp(name)
	}
}

// join brings a node back.
func (n *network) join(name raft.ServerAddress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.apart, name)
}
