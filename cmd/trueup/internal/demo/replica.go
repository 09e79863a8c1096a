// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/shards"
)

// ReplicaCommand is the name of the subcommand that calls [RunReplica].
const ReplicaCommand = "demo-replica"

const (
	ring = "websites"
	// leaseDuration is short, so that a demo does not wait for long. The default is 15 seconds.
	leaseDuration = 4 * time.Second
	// mostEnds is how often a replica is started again that has ended by itself within longStart.
	mostEnds  = 3
	longStart = 2 * leaseDuration
)

// replicaOptions are what a replica needs. The demo writes them to the standard input of the process.
type replicaOptions struct {
	Name    string
	API     string // the URL
	Token   string
	Records string
	Verbose int
}

// RunReplica runs a replica of the controller, in a process that the demo has started. It ends at the end of the input:
// when the demo closes it, or has ended in any way.
func RunReplica(input io.Reader, logs io.Writer) error {
	o := replicaOptions{}
	if err := json.NewDecoder(input).Decode(&o); err != nil {
		return fmt.Errorf("only trueup demo --replicas can start a replica: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	attributes := []slog.Attr{slog.String("replica", o.Name)}
	setLoggers(logr.FromSlogHandler(handler(Options{Verbosity: o.Verbose, Log: logs}).WithAttrs(attributes)))
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	shard, err := shards.New(shards.Options{
		Ring: ring, Shard: o.Name, Namespace: rules.Namespace,
		// Themes are ConfigMaps that all replicas need.
		Kinds: []client.Object{&websitev1.Website{}, &appsv1.Deployment{}, &corev1.Service{}},
	})
	if err != nil {
		return err
	}
	config := &rest.Config{Host: o.API, BearerToken: o.Token, QPS: -1}
	config.ContentType = "application/json" // the journal reads it
	options, err := shard.ManagerOptions(config, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: new(gracePeriod),
		LeaseDuration:           new(leaseDuration),
		RenewDeadline:           new(leaseDuration * 3 / 4),
		RetryPeriod:             new(leaseDuration / 8),
	})
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	err = website.SetupWithManager(ctx, mgr, website.Options{Records: dns.NewDirectory(o.Records), Shard: shard})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// replica is a replica of the controller in a process of its own. If the process ends by itself, it is started again,
// as in a cluster.
type replica struct {
	replicaOptions
	log   io.Writer // receives the logs
	leave func()    // ends the access to the API
	// endedSelf is called when the process has ended by itself. final reports whether it is not started again.
	endedSelf func(reason string, final bool)

	mu       sync.Mutex
	expected bool // the demo ends the process
	ends     int  // soon after the start, without a longer run in between
	started  time.Time
	process  *os.Process
	stdin    io.Closer
	ended    chan struct{}
}

// start starts a process.
func (r *replica) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected = false
	return r.startLocked()
}

func (r *replica) startLocked() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, ReplicaCommand) //nolint:noctx // it ends with its input
	output := &bytes.Buffer{}
	cmd.Stderr = output
	if r.Verbose > 0 {
		cmd.Stderr = io.MultiWriter(output, r.log)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", r.Name, err)
	}
	ended := make(chan struct{})
	r.process, r.stdin, r.ended, r.started = cmd.Process, stdin, ended, time.Now()
	go func() {
		_ = cmd.Wait() // the output says why
		close(ended)
		r.afterEnd(output.String())
	}()
	_ = json.NewEncoder(stdin).Encode(r.replicaOptions) // it fails only if the process has ended
	return nil
}

// afterEnd starts a process again that has ended by itself.
func (r *replica) afterEnd(output string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.expected {
		return
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if time.Since(r.started) > longStart {
		r.ends = 0 // a busy machine may delay the renewal of a Lease
	}
	r.ends++
	if r.endedSelf(lines[len(lines)-1], r.ends > mostEnds); r.ends > mostEnds {
		return
	}
	if err := r.startLocked(); err != nil {
		r.endedSelf(err.Error(), true)
	}
}

// pid returns the ID of the process.
func (r *replica) pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process.Pid
}

// running reports whether the demo has not ended the process.
func (r *replica) running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.expected
}

// kill ends the process with SIGKILL, and returns when it has ended.
func (r *replica) kill() {
	r.mu.Lock()
	r.expected = true
	process, ended := r.process, r.ended
	r.mu.Unlock()
	_ = process.Kill() // it may have ended
	<-ended
}

// stop asks the process to end, and kills it if it does not. It returns when it has ended.
func (r *replica) stop() {
	r.mu.Lock()
	r.expected = true
	ended := r.ended
	_ = r.stdin.Close()
	r.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(2 * gracePeriod):
		r.kill()
	}
	r.leave()
}
