// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// stopGrace is how long the control plane may take to stop. Its own watchdog ends it after four seconds.
	stopGrace = 6 * time.Second
	// pipeGrace is how long its pipes are read after it has exited, in case one of its children still holds them open.
	pipeGrace = 2 * time.Second
	// privateFolder is the prefix of the directory that the control plane creates for itself.
	privateDirPrefix = "trueup-controlplane-"
	// maxReadyLine limits how much of the control plane's standard output is kept.
	maxReadyLine = 1 << 16
)

// readyLine is the line that the control plane prints when its API is ready.
type readyLine struct {
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
	Dir        string `json:"dir"`
	PID        int    `json:"pid"`
}

// process is a control plane that runs as a child process. Its standard input is a pipe that this process holds open
// and never writes to. The control plane stops at the end of that input, which occurs when stop is called or this
// process ends in any way.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	output tail
	grace  time.Duration

	mu       sync.Mutex
	private  string // directory to remove after the process, or ""
	stopping bool
	killed   bool
	err      error // why the process ended; set before done is closed
	stopErr  error // error of stopping and removing; set before done is closed

	stopOnce sync.Once
	done     chan struct{}
}

// startProcess starts the control plane and waits until it is ready. If it returns an error, no process keeps running.
func startProcess(
	ctx context.Context, binary string, o *Options, inherited ...*os.File,
) (*process, readyLine, error) {
	//nolint:noctx // ctx bounds the start; the process outlives it.
	cmd := exec.Command(binary, append([]string{"--stop-with-stdin"}, arguments(o)...)...)
	p := &process{cmd: cmd, grace: stopGrace, done: make(chan struct{})}
	ready := make(chan string, 1)
	stderr := &lineWriter{each: p.output.add}
	p.cmd.Stdout = &firstLine{line: ready}
	p.cmd.Stderr = stderr
	if o.Verbosity > 0 {
		p.cmd.Stderr = io.MultiWriter(stderr, alwaysWriter{o.LogOutput})
	}
	// Standard output and error are always separate pipes. A child that held the standard output of a test would keep "go
	// test" waiting for it.
	p.cmd.Dir = os.TempDir()
	p.cmd.ExtraFiles = inherited
	p.cmd.WaitDelay = pipeGrace
	p.cmd.SysProcAttr = detached()
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, readyLine{}, err
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		return nil, readyLine{}, fmt.Errorf("sandbox: starting the control plane: %w", err)
	}
	go p.wait(stderr)

	timeout := time.NewTimer(o.StartTimeout)
	defer timeout.Stop()
	var line string
	select {
	case line = <-ready:
	case <-p.done:
		return nil, readyLine{}, fmt.Errorf("sandbox: the control plane did not start: %s%s", p.cmd.ProcessState, &p.output)
	case <-timeout.C:
		err = fmt.Errorf(
			"sandbox: the control plane %s was not ready after %s; the last lines it wrote:%s", binary, o.StartTimeout,
			&p.output,
		)
	case <-ctx.Done():
		err = fmt.Errorf("sandbox: starting the control plane: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, readyLine{}, errors.Join(err, p.stop())
	}
	r, err := parseReadyLine(line)
	if err != nil {
		err = fmt.Errorf("sandbox: %s is not a control plane of this version: %w", binary, err)
		return nil, readyLine{}, errors.Join(err, p.stop())
	}
	// The name is checked because the directory is removed with its contents, and its path comes from another program.
	if o.Dir == "" && strings.HasPrefix(filepath.Base(r.Dir), privateDirPrefix) {
		p.own(r.Dir)
	}
	return p, r, nil
}

// arguments returns the command line of the control plane for o. Every option that shapes it must be here: control
// planes with equal arguments are shared.
func arguments(o *Options) []string {
	args := []string{"--output", "json"}
	if o.Dir != "" {
		args = append(args, "--dir", o.Dir)
	}
	if o.Controllers != nil {
		args = append(args, "--controllers", strings.Join(o.Controllers, ","))
	}
	if o.Port != 0 {
		args = append(args, "--port", strconv.Itoa(o.Port))
	}
	if o.DisablePods {
		args = append(args, "--pods=false")
	}
	for _, arg := range o.APIServerArgs {
		args = append(args, "--apiserver-arg", arg)
	}
	if o.EmulatedVersion != "" {
		args = append(args, "--emulated-version", o.EmulatedVersion)
	}
	if o.AuditLog != "" {
		args = append(args, "--audit-log", o.AuditLog)
	}
	if o.Verbosity > 0 {
		args = append(args, "-v", strconv.Itoa(o.Verbosity))
	}
	return args
}

func parseReadyLine(line string) (readyLine, error) {
	var r readyLine
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return r, fmt.Errorf("it printed %q, want a line of JSON", line)
	}
	if r.URL == "" || !filepath.IsAbs(r.Kubeconfig) || !filepath.IsAbs(r.Dir) {
		return r, fmt.Errorf("url, kubeconfig and dir are required, got %q", line)
	}
	return r, nil
}

// own removes dir after the process has ended. The process removes it itself unless it is killed.
func (p *process) own(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done: // it was killed before dir was known
		_ = os.RemoveAll(dir)
	default:
		p.private = dir
	}
}

// wait waits for the end of the process, records the reason and removes its directory.
func (p *process) wait(stderr *lineWriter) {
	exit := p.cmd.Wait()
	// A program may end in the middle of a line.
	stderr.flush()
	// The process has exited, even if one of its children still holds its pipes.
	if errors.Is(exit, exec.ErrWaitDelay) {
		exit = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		p.err = ErrStopped
		switch {
		case p.killed:
			p.stopErr = fmt.Errorf("sandbox: the control plane did not stop within %s and was killed%s", p.grace, &p.output)
		case exit != nil:
			p.stopErr = fmt.Errorf("sandbox: stopping the control plane: %w%s", exit, &p.output)
		}
	} else {
		p.err = fmt.Errorf("sandbox: the control plane exited: %s%s", p.cmd.ProcessState, &p.output)
	}
	if p.private != "" {
		if err := os.RemoveAll(p.private); err != nil {
			p.stopErr = errors.Join(p.stopErr, fmt.Errorf("sandbox: removing the control plane's directory: %w", err))
		}
	}
	close(p.done)
}

// stop stops the process, kills it if that takes too long, and returns when it has ended. Every call returns the same
// result.
func (p *process) stop() error {
	p.stopOnce.Do(func() {
		p.mu.Lock()
		select {
		case <-p.done: // it has already ended; err has the reason
		default:
			p.stopping = true
		}
		p.mu.Unlock()
		_ = p.stdin.Close()
		timer := time.NewTimer(p.grace)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
			p.mu.Lock()
			p.killed = true
			p.mu.Unlock()
			_ = p.cmd.Process.Kill()
		}
	})
	<-p.done
	return p.stopErr
}

func (p *process) ended() <-chan struct{} { return p.done }

func (p *process) reason() error { return p.err }

// firstLine sends the first line that is written to it and drops the rest.
type firstLine struct {
	line chan<- string // buffered
	got  []byte
	sent bool
}

func (w *firstLine) Write(p []byte) (int, error) {
	if w.sent {
		return len(p), nil
	}
	part, _, complete := strings.Cut(string(p), "\n")
	w.got = append(w.got, part...)
	if complete || len(w.got) > maxReadyLine {
		w.sent = true
		w.line <- string(w.got)
	}
	return len(p), nil
}
