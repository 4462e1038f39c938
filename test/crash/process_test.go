package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/duemq/duemq/test/crash/history"
)

// patience is how long a process may take to open a store or to end; far more
// than any of them needs.
const patience = time.Minute

// errPatience says that a process did nothing for too long.
var errPatience = errors.New("it takes too long")

// A process is a worker as the driver sees it.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr words
	up     chan struct{} // closed when the store is open
	eof    chan struct{} // closed when nothing more will come

	events []history.Event // after eof
	err    error           // of reading them
}

// startProcess starts a worker. Whole lines are copied to record.
func startProcess(s spec, record io.Writer) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self), up: make(chan struct{}), eof: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(encoded))
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(out, record)
	return p, nil
}

// read takes down what the worker writes until there is no more. A last line
// that is not whole does not count: its writer was killed on the way.
func (p *process) read(out io.Reader, record io.Writer) {
	defer close(p.eof)
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		var e history.Event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err == nil {
			_, err = record.Write(line)
		}
		if err != nil {
			p.err = err
			return
		}
		if p.events = append(p.events, e); e.Kind == history.Up {
			close(p.up)
		}
	}
}

// awaitUp waits until the store is open and says whether it is.
func (p *process) awaitUp() (bool, error) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-p.up:
		return true, nil
	case <-p.eof:
		return false, nil
	case <-limit.C:
		return false, errPatience
	}
}

// kill kills the process d from now and drains what it wrote. It gives the
// instant of the kill, and an error if the process had ended before by itself.
func (p *process) kill(d time.Duration) (time.Time, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.eof:
		return time.Now(), p.ended()
	}
	at := time.Now()
	if err := p.cmd.Process.Kill(); err != nil {
		return at, fmt.Errorf("kill: %w", err)
	}
	<-p.eof // everything that it wrote, before anything else happens
	_ = p.cmd.Wait()
	if p.err != nil {
		return at, p.err
	}
	if state := p.cmd.ProcessState; state.Exited() {
		return at, p.ended()
	}
	return at, nil
}

// stopNow asks the process to close the store.
func (p *process) stopNow() error {
	_, err := io.WriteString(p.stdin, stopLine+"\n")
	return err
}

// await waits for the process to end by itself, in good order.
func (p *process) await() error {
	limit := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	<-p.eof
	err := p.cmd.Wait()
	if !limit.Stop() {
		return fmt.Errorf("%w; it was killed%s", errPatience, p.stderr.quote())
	}
	if err == nil {
		err = p.err
	}
	if err != nil {
		return fmt.Errorf("%w%s", err, p.stderr.quote())
	}
	return nil
}

// ended describes a process that was not meant to end.
func (p *process) ended() error {
	<-p.eof
	_ = p.cmd.Wait()
	return fmt.Errorf("the process ended by itself: %v%s", p.cmd.ProcessState, p.stderr.quote())
}

// words keep the beginning of what a process writes to standard error:
// what went wrong first.
type words struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const (
	maxWords  = 64 << 10
	maxQuoted = 40 // lines, room for a panic
)

// Write keeps p if there is room.
func (l *words) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len() < maxWords {
		l.buf.Write(p)
	}
	return len(p), nil
}

func (l *words) quote() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.SplitN(strings.TrimSpace(l.buf.String()), "\n", maxQuoted+1)
	if lines[0] == "" {
		return ""
	}
	if len(lines) > maxQuoted {
		lines[maxQuoted] = "..."
	}
	return ", and wrote:\n" + strings.Join(lines, "\n")
}
