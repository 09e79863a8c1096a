// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// maxLeaseLog limits how much of the control plane's output is read for an error.
const maxLeaseLog = 1 << 16

// lease is the use of a control plane that other processes use as well. It is a connection: when this process ends, in
// any way, the operating system closes it. The control plane ends some time after the last one.
type lease struct {
	connection net.Conn
	log        *os.File // what the control plane writes to standard error

	started    chan struct{} // closed when the control plane has printed its first line
	ready      readyLine     // set before started is closed
	startedErr error         // set before started is closed

	claims  sync.Mutex  // held from a request to its reply
	replies chan string // lines after the first

	stopOnce sync.Once
	stopping chan struct{}
	done     chan struct{}
	output   string // the last lines that the control plane has written; set before done is closed
	err      error  // why the lease ended; set before done is closed
}

func newLease(connection net.Conn, log *os.File) *lease {
	l := &lease{
		connection: connection,
		log:        log,
		started:    make(chan struct{}),
		replies:    make(chan string),
		stopping:   make(chan struct{}),
		done:       make(chan struct{}),
	}
	go l.read()
	return l
}

// read passes the control plane's lines on until the connection ends.
func (l *lease) read() {
	lines := bufio.NewScanner(l.connection)
	if lines.Scan() {
		l.ready, l.startedErr = parseReadyLine(lines.Text())
		close(l.started)
	}
	for lines.Scan() {
		select {
		case l.replies <- lines.Text():
		case <-l.stopping:
		}
	}
	select {
	case <-l.stopping:
		l.err = ErrStopped
	default:
		// The connection ends with the control plane's process.
		l.output = l.logged()
		l.err = fmt.Errorf("sandbox: the control plane exited, which other test binaries may have used as well%s", l.output)
		l.clean()
	}
	_ = l.connection.Close()
	_ = l.log.Close()
	close(l.done)
}

// clean removes the files of a control plane that has ended. A killed one does not remove them itself.
func (l *lease) clean() {
	if strings.HasPrefix(filepath.Base(l.ready.Dir), privateDirPrefix) {
		_ = os.RemoveAll(l.ready.Dir)
	}
	root := filepath.Dir(filepath.Dir(l.log.Name()))
	ctx, cancel := context.WithTimeout(context.Background(), pipeGrace)
	defer cancel()
	if unlock, err := lockLeaseRoot(ctx, root); err == nil {
		removeDeadLeases(root)
		_ = os.Remove(root) // fails while other control planes use it
		unlock()
	}
}

// await waits until the control plane is ready.
func (l *lease) await(ctx context.Context) error {
	select {
	case <-l.started:
		if l.startedErr != nil {
			return fmt.Errorf("sandbox: not a control plane of this version: %w", l.startedErr)
		}
		return nil
	case <-l.done:
		return errEndedEarly
	case <-ctx.Done():
		return fmt.Errorf("sandbox: starting the control plane: %w", context.Cause(ctx))
	}
}

// logged returns the last lines that the control plane has written.
func (l *lease) logged() string {
	info, err := l.log.Stat()
	if err != nil {
		return ""
	}
	var output tail
	lines := &lineWriter{each: output.add}
	_, _ = io.Copy(lines, io.NewSectionReader(l.log, max(0, info.Size()-maxLeaseLog), maxLeaseLog))
	lines.flush()
	return output.String()
}

// stop ends the lease. The control plane keeps running for others.
func (l *lease) stop() error {
	l.stopOnce.Do(func() {
		close(l.stopping)
		_ = l.connection.Close()
	})
	<-l.done
	return nil
}

func (l *lease) ended() <-chan struct{} { return l.done }

func (l *lease) reason() error { return l.err }

type claimRequest struct {
	Client string            `json:"client"`
	Runner *runner           `json:"runner,omitempty"`
	Claims map[string]string `json:"claims"`
}

type claimReply struct {
	Conflict string `json:"conflict"`
	Client   string `json:"client"`
	Replaced bool   `json:"replaced"`
}

// conflictError is the error if another process needs something that this process needs with another content.
type conflictError struct {
	name, client string
	cause        error // why the content cannot be changed, or nil
}

func (e *conflictError) Error() string {
	text := fmt.Sprintf(
		"%s differs from the one of %s, which has used the same control plane; set TestOptions.Private to use another",
		e.name, e.client,
	)
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

func (e *conflictError) Unwrap() error { return e.cause }

// claim reserves names with their values until the lease ends. It returns a conflictError if another process has
// reserved one with another value, and reserves none then. It reports whether an earlier process, which has ended, used
// another value.
func (l *lease) claim(ctx context.Context, values map[string]string) (replaced bool, err error) {
	l.claims.Lock()
	defer l.claims.Unlock()
	request, err := json.Marshal(claimRequest{Client: clientName(), Runner: goRunner(), Claims: values})
	if err != nil {
		return false, err
	}
	if _, err := l.connection.Write(append(request, '\n')); err != nil {
		return false, fmt.Errorf("the shared control plane does not answer: %w", err)
	}
	select {
	case line := <-l.replies:
		var reply claimReply
		if err := json.Unmarshal([]byte(line), &reply); err != nil {
			return false, fmt.Errorf("the shared control plane answered %q: %w", line, err)
		}
		if reply.Conflict != "" {
			return false, &conflictError{name: strings.TrimPrefix(reply.Conflict, claimedDefinition), client: reply.Client}
		}
		return reply.Replaced, nil
	case <-l.done:
		return false, errors.New("the shared control plane has ended")
	case <-ctx.Done():
		_ = l.connection.Close() // a late reply must not be taken for that to the next request
		return false, fmt.Errorf("the shared control plane does not answer: %w", context.Cause(ctx))
	}
}

// runner is the process that runs this one.
type runner struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// goRunner returns the go command that runs this test binary, or nil. It may run others later: the control plane keeps
// running for them. It is only known on Linux.
func goRunner() *runner {
	pid := os.Getppid()
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	// The ID, the name in parentheses, and further fields. The 20th of those is the time of the start.
	const start = 19
	_, name, _ := strings.Cut(string(content), "(")
	i := strings.LastIndexByte(name, ')')
	if i < 0 || name[:i] != "go" {
		return nil
	}
	fields := strings.Fields(name[i+1:])
	if len(fields) <= start {
		return nil
	}
	return &runner{PID: pid, Start: fields[start]}
}

// clientName describes this process to others.
func clientName() string {
	name := filepath.Base(os.Args[0])
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		name = info.Path
	}
	return fmt.Sprintf("%s (process %d)", strings.TrimSuffix(name, ".test"), os.Getpid())
}

// claimedDefinition is the prefix of claims of CustomResourceDefinitions.
const claimedDefinition = "customresourcedefinition "

// claimDefinitions reserves the definitions with their content if other processes use the control plane.
func (s *Sandbox) claimDefinitions(ctx context.Context, definitions []definition) (replaced bool, err error) {
	l, ok := s.server.(*lease)
	if !ok {
		return false, nil
	}
	claims := map[string]string{}
	for _, d := range definitions {
		spec, err := json.Marshal(d.object.Object["spec"])
		if err != nil {
			return false, fmt.Errorf("%s: %w", d.origin, err)
		}
		sum := sha256.Sum256(spec)
		claims[claimedDefinition+d.crd.Name] = hex.EncodeToString(sum[:])
	}
	return l.claim(ctx, claims)
}
