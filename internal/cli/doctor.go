package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/cli/machine"
	"github.com/duemq/duemq/internal/config"
)

// A grade is what a finding means.
type grade string

const (
	gradeOK   grade = "ok"
	gradeWarn grade = "warn" // works, but not as well or as safely as it could
	gradeFail grade = "fail" // does not work, or soon will not
)

// A finding is what one check has found.
type finding struct {
	Check  string `json:"check"`
	Grade  grade  `json:"grade"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the machine, the data folder and the server",
		Long: `Check what a server needs: a clock that is kept right, space and a disk that syncs fast enough,
open files, its port, its data folder; and whether a server answers. Each line is ok, warn or
fail, with what to do about it. It exits with 1 if anything fails.`,
		Example: a.example("doctor", "", "doctor --data /var/lib/duemq -o json", ""),
		Args:    a.args(0, 0),
	}
	settings := a.settingsFlags(cmd, "data", "http", "port-base", "insecure")
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l, err := settings.load()
		if err != nil {
			return err
		}
		d := &doctor{a: a, c: &l.Config, remote: r, out: list{a: a}}
		return d.run(cmd.Context())
	}
	return cmd
}

// A doctor is one run of the checks.
type doctor struct {
	a      *app
	c      *config.Config
	remote *remote
	out    list
	failed int

	holder machine.Process // of the data folder
	held   bool
}

func (d *doctor) run(ctx context.Context) error {
	d.holder, d.held = machine.LockHolder(filepath.Join(d.c.Data, lockName))
	for _, check := range []func(context.Context) finding{
		d.clock, d.folder, d.space, d.sync, d.files, d.port, d.server,
	} {
		f := check(ctx)
		if f.Check == "" {
			continue // nothing can be said on this system
		}
		if f.Grade == gradeFail {
			d.failed++
		}
		if err := d.out.add(f, d.line(&f)); err != nil {
			return err
		}
	}
	if err := d.out.end(); err != nil {
		return err
	}
	if d.failed > 0 {
		return &failure{code: exitFailure, what: several(d.failed, "check") + " failed"}
	}
	return nil
}

func (d *doctor) line(f *finding) string {
	colors := map[grade]color{gradeOK: green, gradeWarn: yellow, gradeFail: red}
	line := fmt.Sprintf("%s  %-12s %s", d.a.paint(d.a.outWidth, colors[f.Grade], fmt.Sprintf("%-4s", f.Grade)), f.Check, f.Text)
	if f.Remedy != "" {
		line += fmt.Sprintf("\n%19s%s", "", f.Remedy)
	}
	return line
}

func (d *doctor) clock(context.Context) finding {
	f := finding{Check: "clock", Grade: gradeOK, Text: d.a.now().In(d.a.Zone).Format("2006-01-02 15:04:05 -07:00")}
	if d.a.now().Year() < 2020 {
		f.Grade, f.Remedy = gradeFail, "set it: no clock before 2020 is believed, and nothing would fall due"
		return f
	}
	s, ok := machine.ClockSync()
	switch {
	case !ok:
		f.Text += "; whether it is kept right cannot be told on this system"
	case s.Synced:
		f.Text += fmt.Sprintf(", kept by a time server to within %v", s.MaxError.Round(time.Millisecond))
	default:
		f.Grade, f.Text = gradeWarn, f.Text+", not kept by a time server"
		f.Remedy = "run one (chrony, systemd-timesyncd): what is due at an instant is due by this clock; in a container, look at the host"
	}
	return f
}

func (d *doctor) folder(context.Context) finding {
	f := finding{Check: "data folder", Grade: gradeOK}
	info, err := os.Stat(d.c.Data)
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.Text = d.c.Data + " is not there yet; serve makes it"
		return f
	case err != nil:
		f.Grade, f.Text = gradeFail, err.Error()
		return f
	case !info.IsDir():
		f.Grade, f.Text, f.Remedy = gradeFail, d.c.Data+" is not a folder", "name another one: --data DIR"
		return f
	}
	_, err = os.Stat(filepath.Join(d.c.Data, storeName))
	switch {
	case d.held:
		f.Text = fmt.Sprintf("%s is in use by %v", d.c.Data, d.holder)
	case errors.Is(err, os.ErrNotExist):
		f.Text = d.c.Data + " has no data in it yet"
	case err != nil:
		f.Grade, f.Text, f.Remedy = gradeFail, err.Error(), "give yourself the rights"
	default:
		f.Text = fmt.Sprintf("%s has data, and no server has it open; is it whole? %s verify --data %s", d.c.Data, d.a.self, quote(d.c.Data))
	}
	return f
}

// place is the data folder, or the nearest folder above it that is there.
func (d *doctor) place() string {
	at, err := filepath.Abs(d.c.Data)
	if err != nil {
		return "."
	}
	for {
		if info, err := os.Stat(at); err == nil && info.IsDir() {
			return at
		}
		up := filepath.Dir(at)
		if up == at {
			return at
		}
		at = up
	}
}

// Shares of free space, in percent, that grade the disk.
const (
	spaceWarn = 10
	spaceFail = 5
)

func (d *doctor) space(context.Context) finding {
	f := finding{Check: "disk space", Grade: gradeOK}
	u, err := d.a.disk.GetDiskUsage(d.place())
	if err != nil || u.TotalBytes == 0 {
		return finding{}
	}
	free := float64(u.AvailBytes) / float64(u.TotalBytes) * 100
	f.Text = fmt.Sprintf("%s free of %s (%.0f %%)", size(int64(u.AvailBytes)), size(int64(u.TotalBytes)), free)
	switch {
	case free < spaceFail:
		f.Grade, f.Remedy = gradeFail, "make room: what waits cannot be dropped"
	case free < spaceWarn:
		f.Grade, f.Remedy = gradeWarn, "make room soon"
	}
	return f
}

// How syncs are measured and graded.
const (
	syncSamples  = 64
	syncSlow     = 20 * time.Millisecond // at the median
	syncTooQuick = 10 * time.Microsecond // no disk that keeps what it is told can
)

func (d *doctor) sync(context.Context) finding {
	f := finding{Check: "disk sync", Grade: gradeOK}
	took, err := machine.SyncLatency(d.a.disk, d.a.Clock, d.place(), syncSamples)
	if err != nil {
		f.Grade, f.Text, f.Remedy = gradeFail, err.Error(), "give yourself the rights to write there, or look at the disk"
		return f
	}
	median, p99 := took[len(took)/2], took[len(took)-1]
	f.Text = fmt.Sprintf("4 KiB are on disk after %v at the median, %v at most, of %d", rough(median), rough(p99), len(took))
	switch {
	case median < syncTooQuick:
		f.Grade = gradeWarn
		f.Remedy = "no disk is as quick as that: a file system in memory, or one that ignores syncs? A power cut would lose what was acknowledged"
	case median > syncSlow:
		f.Grade = gradeWarn
		f.Remedy = "senders wait so long, unless many send at once; an SSD helps, or --sync interval if a power cut may lose the last messages"
	}
	return f
}

func rough(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}

// filesWarn is how many files a server with many connections needs.
const filesWarn = 4096

func (d *doctor) files(context.Context) finding {
	n, ok := machine.OpenFiles()
	if !ok {
		return finding{}
	}
	f := finding{Check: "open files", Grade: gradeOK, Text: "up to " + count(n)}
	if n > 1<<40 {
		f.Text = "no limit"
	}
	if n < filesWarn {
		f.Grade, f.Remedy = gradeWarn, fmt.Sprintf("raise it: ulimit -n %d, or LimitNOFILE in the unit; every connection takes one", 16*filesWarn)
	}
	return f
}

func (d *doctor) port(ctx context.Context) finding {
	if d.c.HTTP == config.Off {
		return finding{}
	}
	f := finding{Check: "port", Grade: gradeOK}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", d.c.HTTP)
	if err == nil {
		f.Text = d.c.HTTP + " is free"
		if err := l.Close(); err != nil {
			f.Grade, f.Text = gradeWarn, err.Error()
		}
		return f
	}
	if !machine.PortTaken(err) {
		f.Grade, f.Text, f.Remedy = gradeFail, err.Error(), "choose another address: --http"
		return f
	}
	_, text, _ := net.SplitHostPort(d.c.HTTP)
	port, _ := strconv.Atoi(text)
	p, known := machine.PortHolder(port)
	switch {
	case known && d.held && p.PID == d.holder.PID:
		f.Text = fmt.Sprintf("%s is served by %v", d.c.HTTP, p)
	case known:
		f.Grade, f.Text = gradeWarn, fmt.Sprintf("%s is taken by %v", d.c.HTTP, p)
		f.Remedy = "right if that is the server you mean; else choose another: --http or --port-base"
	default:
		f.Grade, f.Text = gradeWarn, d.c.HTTP+" is taken by another program"
		f.Remedy = "right if that is the server you mean; else choose another: --http or --port-base"
	}
	return f
}

// answerWithin bounds how long the server may take to answer.
const answerWithin = 5 * time.Second

func (d *doctor) server(ctx context.Context) finding {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	f := finding{Check: "server", Grade: gradeOK}
	c, err := d.remote.dial()
	if err != nil {
		f.Grade, f.Text, f.Remedy = gradeFail, err.Error(), "give --server a URL such as http://127.0.0.1:9870"
		return f
	}
	defer c.Close()
	v, err := c.Version(ctx)
	if err != nil {
		f.Grade, f.Text = gradeWarn, d.remote.url+" does not answer: "+err.Error()
		f.Remedy = "start one: " + d.a.self + " serve"
		return f
	}
	f.Text = fmt.Sprintf("%s runs duemq %s", d.remote.url, v.Version)
	if err := c.Ready(ctx); err != nil {
		f.Grade, f.Text = gradeFail, f.Text+", which is not ready: "+err.Error()
		return f
	}
	if n, err := c.Stats(ctx); err == nil {
		f.Text += fmt.Sprintf(", %s pending", count(n.Messages.Waiting))
		if n.Messages.Overdue {
			f.Grade, f.Text = gradeWarn, f.Text+", some of it overdue"
			f.Remedy = "it is catching up; if that does not end: look at its log"
		}
	}
	return f
}
