// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// SharedVariable is the environment variable that controls whether test binaries share a control plane: "off", or how
	// long the control plane runs after the last one has ended, for example "15m". Default: 10 seconds.
	SharedVariable = "TRUEUP_SHARED"

	sharedOff          = "off"
	defaultSharedGrace = 10 * time.Second

	leaseSocket = "socket"
	leaseLog    = "log"
	// maxLeaseRoot leaves room for the names below it in the 104 bytes that the path of a unix socket may have.
	maxLeaseRoot = 70
	// maxLeaseTries limits how often a control plane that ends before it is ready is replaced by another.
	maxLeaseTries = 3
)

var errNotShared = errors.New("sandbox: the control plane cannot be shared")

// sharedGrace returns how long a shared control plane runs after its last use, or 0 if control planes are not shared.
func sharedGrace() (time.Duration, error) {
	value := os.Getenv(SharedVariable)
	switch value {
	case "":
		return defaultSharedGrace, nil
	case sharedOff:
		return 0, nil
	}
	grace, err := time.ParseDuration(value)
	if err != nil || grace <= 0 {
		return 0, fmt.Errorf("sandbox: %s: %q must be %q or a positive duration such as \"15m\"", SharedVariable, value,
			sharedOff)
	}
	return grace, nil
}

// mayShare reports whether other test binaries can use a control plane with these options. A directory and a port can
// have only one owner, and logs belong to one test binary.
func (o *Options) mayShare() bool {
	return o.Backend != Memory && o.Kubeconfig == "" && o.Dir == "" && o.Port == 0 && o.Verbosity == 0 &&
		o.AuditLog == ""
}

// sharedControlPlane finds or starts a control plane that several processes use.
type sharedControlPlane struct {
	binary    string
	arguments []string
	root      string // directory of all shared control planes of the user
	dir       string // directory of this one, in root
}

// openShared returns the control plane for o that other test binaries use as well. If it cannot be shared, openShared
// starts one for this process.
func openShared(ctx context.Context, o Options) (*Sandbox, error) {
	grace, err := sharedGrace()
	if err != nil {
		return nil, err
	}
	if grace == 0 || !canShare || !o.mayShare() {
		return Start(ctx, o)
	}
	if err := checkTempDir(); err != nil {
		return nil, err
	}
	binary, err := findBinary(ctx, &o)
	if err != nil {
		return nil, err
	}
	display := startProgress(o.Progress, "starting the control plane", true)
	l, err := leaseShared(ctx, binary, &o, grace)
	display.end("")
	if errors.Is(err, errNotShared) {
		say(o.Progress, "trueup: this test binary gets a control plane of its own: %v\n", err)
		return startPrivate(ctx, binary, &o)
	}
	if err != nil {
		return nil, err
	}
	s, err := newSandbox(l, l.ready)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, o.StartTimeout)
	defer cancel()
	webhook, err := unselectiveConfiguration(limited, s.RESTConfig())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: reading the webhook configurations: %w", orDeath(s, err)), s.Stop())
	}
	if webhook != "" {
		_ = s.Stop() // only ends the lease
		say(o.Progress, "trueup: this test binary gets a control plane of its own: the webhook configuration %s of another "+
			"one includes its namespaces\n", webhook)
		return startPrivate(ctx, binary, &o)
	}
	return s, nil
}

// leaseShared returns a lease of the control plane for o. It starts the control plane unless another process has
// started it. The error is errNotShared if the machine does not allow sharing.
func leaseShared(ctx context.Context, binary string, o *Options, grace time.Duration) (*lease, error) {
	c := &sharedControlPlane{
		binary:    binary,
		arguments: append(arguments(o), "--lease-grace", grace.String()),
	}
	var err error
	if c.root, err = leaseRoot(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotShared, err)
	}
	key, err := c.key()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	c.dir = filepath.Join(c.root, key)
	c.arguments = append(c.arguments, "--leases", c.dir)
	ctx, cancel := context.WithTimeoutCause(ctx, o.StartTimeout, fmt.Errorf("not ready after %s", o.StartTimeout))
	defer cancel()
	for range maxLeaseTries {
		var l *lease
		if l, err = c.lease(ctx); err == nil {
			// A claim without names only describes this process and its runner.
			if _, err = l.claim(ctx, nil); err == nil {
				return l, nil
			}
			return nil, errors.Join(fmt.Errorf("sandbox: %w", err), l.stop())
		}
		if !errors.Is(err, errEndedEarly) {
			break
		}
	}
	return nil, err
}

// errEndedEarly is the error if a control plane that another process has started ends before it is ready, for example
// because it was about to stop.
var errEndedEarly = errors.New("sandbox: the shared control plane ended before it was ready")

// key identifies everything that shapes the process: the binary, its arguments, the environment variables that it or
// Go's runtime read, and the network that its address belongs to.
func (c *sharedControlPlane) key() (string, error) {
	info, err := os.Stat(c.binary)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %d %d\n", c.binary, info.Size(), info.ModTime().UnixNano())
	_, _ = fmt.Fprintf(sum, "%q %q %q\n", c.arguments, shapingEnvironment(os.Environ()), os.TempDir())
	network, _ := os.Readlink("/proc/self/ns/net") // only Linux has it
	_, _ = fmt.Fprintf(sum, "%q\n", network)
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// shapingEnvironment returns the variables that change the behavior of a control plane.
func shapingEnvironment(environment []string) []string {
	var shaping []string
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasPrefix(name, "KUBE"), strings.HasPrefix(name, "ETCD"),
			name == "GODEBUG", name == "GOGC", name == "GOMEMLIMIT", name == "GOMAXPROCS":
			shaping = append(shaping, variable)
		}
	}
	slices.Sort(shaping)
	return shaping
}

// leaseRoot returns a directory that only this user can access.
func leaseRoot() (string, error) {
	parent, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", err
	}
	if len(parent) > maxLeaseRoot-len("/trueup-4294967295") {
		parent = "/tmp" // the path of a unix socket must be short
	}
	return filepath.Join(parent, fmt.Sprintf("trueup-%d", os.Getuid())), nil
}

// lease connects to the control plane, or starts it, and returns when it is ready.
func (c *sharedControlPlane) lease(ctx context.Context) (*lease, error) {
	l, child, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.await(ctx); err != nil {
		state := ""
		if child != nil && errors.Is(err, errEndedEarly) {
			// It was started here, so that another try has the same result.
			select {
			case <-child.ended:
				state = child.cmd.ProcessState.String()
			case <-time.After(pipeGrace):
			}
			err = fmt.Errorf("sandbox: the control plane did not start: %s%s", state, l.output)
		}
		_ = l.stop()
		return nil, err
	}
	return l, nil
}

// connect connects to the control plane. It starts the control plane if no process listens. The directory of all shared
// control planes is locked meanwhile, so that only one process starts it.
func (c *sharedControlPlane) connect(ctx context.Context) (*lease, *leaseChild, error) {
	unlock, err := lockLeaseRoot(ctx, c.root)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNotShared, err)
	}
	defer unlock()
	if l, err := c.dial(ctx); err == nil {
		return l, nil, nil
	}
	removeDeadLeases(c.root)
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNotShared, err)
	}
	child, err := c.start(ctx)
	if err == nil {
		var l *lease
		if l, err = c.dial(ctx); err == nil {
			return l, child, nil
		}
	}
	_ = os.RemoveAll(c.dir)
	return nil, nil, fmt.Errorf("sandbox: starting the control plane: %w", err)
}

// removeDeadLeases removes what is left from control planes that were killed. The directory must be locked.
func removeDeadLeases(root string) {
	dirs, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		connection, err := net.Dial("unix", filepath.Join(dir, leaseSocket)) //nolint:noctx // ends at once
		if err == nil {
			_ = connection.Close()
			continue
		}
		_ = os.RemoveAll(dir)
	}
}

func (c *sharedControlPlane) dial(ctx context.Context) (*lease, error) {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(c.dir, leaseSocket))
	if err != nil {
		return nil, err
	}
	log, err := os.Open(filepath.Join(c.dir, leaseLog))
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return newLease(connection, log), nil
}

// leaseChild is a control plane that this process has started, and that may outlive it.
type leaseChild struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts the control plane with a listening socket. It does not depend on this process: its output goes to a
// file.
func (c *sharedControlPlane) start(ctx context.Context) (*leaseChild, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", filepath.Join(c.dir, leaseSocket))
	if err != nil {
		return nil, err
	}
	unix := listener.(*net.UnixListener)
	unix.SetUnlinkOnClose(false)
	defer func() { _ = unix.Close() }()
	socket, err := unix.File()
	if err != nil {
		return nil, err
	}
	defer func() { _ = socket.Close() }()
	log, err := os.OpenFile(filepath.Join(c.dir, leaseLog), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	//nolint:noctx // the process outlives ctx
	cmd := exec.Command(c.binary, c.arguments...)
	cmd.Dir = os.TempDir()
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{socket}
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	child := &leaseChild{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the status is in ProcessState
		close(child.ended)
	}()
	return child, nil
}

// checkPrivate returns an error unless the directory is accessible only for this user.
func checkPrivate(path string, info fs.FileInfo) error {
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", path)
	case !ownedByUser(info):
		return fmt.Errorf("the directory %s belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("other users can access the directory %s: its mode is %o, want 700", path, info.Mode().Perm())
	}
	return nil
}
