// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shards_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/sharder"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/shards"
)

var troubled = flag.Duration("troubled", 0, "for how long TestReplicas makes trouble; each kind occurs at least once")

// link is the network between a replica and the API server. While it is cut, nothing arrives. What was sent meanwhile
// arrives when it is mended, even if the replica has ended.
type link struct {
	listener net.Listener
	server   string
	// gate is read-locked while something is sent, and locked while the link is cut.
	gate sync.RWMutex
}

func newLink(e *apitest.Env) *link {
	e.Helper()
	server, err := url.Parse(e.RESTConfig().Host)
	e.Must(err)
	listener, err := new(net.ListenConfig).Listen(e.Context(), "tcp", "127.0.0.1:0")
	e.Must(err)
	l := &link{listener: listener, server: server.Host}
	e.Go("the network of a replica", l.run)
	return l
}

func (l *link) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = l.listener.Close() })()
	for {
		replica, err := l.listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go l.connect(ctx, replica)
	}
}

func (l *link) connect(ctx context.Context, replica net.Conn) {
	server, err := new(net.Dialer).DialContext(ctx, "tcp", l.server)
	if err != nil {
		_ = replica.Close()
		return
	}
	go l.carry(replica, server)
	l.carry(server, replica)
}

func (l *link) carry(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, ended := from.Read(buffer)
		l.gate.RLock()
		_, err := to.Write(buffer[:n])
		l.gate.RUnlock()
		if ended != nil || err != nil {
			return
		}
	}
}

// replica is a process that runs runReplica. It is started again when it ends, as kubelet does, unless it is held.
type replica struct {
	e    *apitest.Env
	name string
	link *link
	// lease is how long the Lease lasts.
	lease time.Duration

	mu      sync.Mutex
	held    bool
	process *exec.Cmd
	output  bytes.Buffer
	ended   chan struct{}
	// The process prints its cost for each line that it gets.
	requests io.Writer
	costs    *json.Decoder
}

func startReplica(e *apitest.Env, name string, lease time.Duration) *replica {
	e.Helper()
	r := &replica{e: e, name: name, link: newLink(e), lease: lease}
	e.Must(r.start())
	e.Cleanup(func() {
		<-r.hold(syscall.SIGKILL)
		if e.Failed() {
			e.Logf("output of replica %s:\n%s", name, r.output.String())
		}
	})
	return r
}

// start starts a process, and another one when it ends. The caller must hold the lock, or be the first.
func (r *replica) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(r.e.Context()), self)
	cmd.Env = append(os.Environ(), replicaVariable+"="+r.name, namespaceVariable+"="+r.e.Namespace,
		kubeconfigVariable+"="+r.e.KubeconfigPath(), serverVariable+"=https://"+r.link.listener.Addr().String(),
		leaseVariable+"="+r.lease.String())
	cmd.Stderr = &r.output
	if r.requests, err = cmd.StdinPipe(); err != nil {
		return err
	}
	costs, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	r.costs = json.NewDecoder(costs)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	r.process, r.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // the output says why
		r.mu.Lock()
		defer r.mu.Unlock()
		close(ended)
		if !r.held {
			if err := r.start(); err != nil {
				r.e.Error(err)
			}
		}
	}()
	return nil
}

// hold sends a signal to the process, which is not started again until it is continued. It returns a channel that is
// closed when the process ends.
func (r *replica) hold(signal os.Signal) (ended <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = true
	_ = r.process.Process.Signal(signal) // it may have ended
	return r.ended
}

// resume starts the process again if it has ended, or continues it.
func (r *replica) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
	select {
	case <-r.ended:
		r.e.Must(r.start())
	default:
		_ = r.process.Process.Signal(syscall.SIGCONT) // if it has just ended, it is started again
	}
}

// cost returns what the process needs.
func (r *replica) cost() (c cost) {
	r.e.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := io.WriteString(r.requests, "\n")
	r.e.Must(err)
	r.e.Must(r.costs.Decode(&c))
	return c
}

// newSharder returns a sharder for the parents and children of a test.
func newSharder(e *apitest.Env) *sharder.Sharder {
	return &sharder.Sharder{Client: e.Client, Ring: ring, Namespace: e.Namespace, Resources: []sharder.Resource{{
		Kind:       corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		Controlled: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret")},
	}}}
}

// change changes a parent, which exists.
func change(ctx context.Context, e *apitest.Env, parent, n int) error {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.Namespace, Name: fmt.Sprintf("parent-%d", parent),
	}}
	return e.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n)))
}

// addParents adds parents whose number is 1.
func addParents(e *apitest.Env, parents int) {
	e.Helper()
	for i := range parents {
		e.Add(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("parent-%d", i)}, Data: map[string]string{"n": "1"},
		})
	}
}

// load changes a parent every few milliseconds.
func load(e *apitest.Env, parents int) func(context.Context) error {
	return func(ctx context.Context) error {
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		for n := 2; ; n++ {
			select {
			case <-ctx.Done():
				return nil
			case <-ticks.C:
			}
			if err := change(ctx, e, rand.IntN(parents), n); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// slack is for a machine that does something else.
const slack = 10 * time.Second

// troubles are what happens to replicas. A change of a parent takes at most a time then.
var troubles = []struct {
	name       string
	begin, end func(*replica)
	most       time.Duration
}{
	{"ended", func(r *replica) { r.hold(syscall.SIGTERM) }, (*replica).resume, slack},
	{"killed", func(r *replica) { r.hold(syscall.SIGKILL) }, (*replica).resume, 2*leaseDuration + slack},
	{"paused", func(r *replica) { r.hold(syscall.SIGSTOP) }, (*replica).resume, 2*leaseDuration + slack},
	{
		"cut off", func(r *replica) { r.link.gate.Lock(); r.hold(syscall.Signal(0)) },
		func(r *replica) { r.link.gate.Unlock(); r.resume() }, 2*leaseDuration + slack,
	},
}

// TestReplicas runs three processes under load. In random order, it ends, kills and pauses them and cuts their network.
// No child may be written by a process that does not have its parent, and no parent may wait for longer than two
// Leases: the sharder takes over a Lease when it has been expired for as long as it lasts.
func TestReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for Leases to expire, for a minute")
	}
	t.Parallel()
	const parents = 60
	e, h := newAudited(t)
	e.Go("the sharder", func(ctx context.Context) error { return newSharder(e).Run(ctx, 100*time.Millisecond) })
	replicas := []*replica{}
	for _, name := range []string{"a", "b", "c"} {
		replicas = append(replicas, startReplica(e, name, leaseDuration))
	}
	addParents(e, parents)
	settled := func() {
		t.Helper()
		e.Eventually(func() error {
			list := &corev1.ConfigMapList{}
			e.Must(e.List(e.Context(), list, client.InNamespace(e.Namespace)))
			has := map[string]bool{}
			for _, parent := range list.Items {
				has[parent.Labels[shards.ShardLabel(ring)]] = true
			}
			if len(has) != len(replicas) || has[""] {
				return fmt.Errorf("shards with objects: %v", slices.Sorted(maps.Keys(has)))
			}
			return nil
		})
	}
	settled()
	e.Eventually(func() error {
		if v := h.judge(e, time.Time{}); v.children < parents {
			return fmt.Errorf("%d children were written, want %d", v.children, parents)
		}
		return nil
	})
	stopLoad := e.Go("the load", load(e, parents))

	for end := time.Now().Add(*troubled); ; {
		for _, i := range rand.Perm(len(troubles)) {
			trouble, r, since := troubles[i], replicas[rand.IntN(len(replicas))], time.Now()
			trouble.begin(r)
			e.Eventually(func() error { // its objects move to the others
				list := &corev1.ConfigMapList{}
				e.Must(e.List(e.Context(), list, client.InNamespace(e.Namespace),
					client.MatchingLabels{shards.ShardLabel(ring): r.name}))
				if len(list.Items) > 0 {
					return fmt.Errorf("%s still has %d objects", r.name, len(list.Items))
				}
				return nil
			})
			trouble.end(r)
			settled() // some move back
			v := h.judge(e, since)
			t.Logf("%s %s: %d moves; the slowest change took %s", r.name, trouble.name, v.moves,
				v.slowest.Round(time.Millisecond))
			if v.slowest > trouble.most {
				t.Errorf("%s %s: the change of %s took %s, want at most %s; its states:%s", r.name, trouble.name, v.of.name,
					v.slowest, trouble.most, h.lastStates(v.of))
			}
		}
		if !time.Now().Before(end) {
			break
		}
	}
	stopLoad()
	e.Eventually(func() error {
		if v := h.judge(e, time.Time{}); len(v.behind) > 0 {
			return fmt.Errorf("behind: %v", v.behind)
		}
		return nil
	})
	v := h.judge(e, time.Time{})
	t.Logf("%d writes of children, %d moves of parents; the API server has refused %d writes as conflicts, %d of them by "+
		"a replica that did not have the parent", v.writes, v.moves, v.conflicts, v.fenced)
	if v.writes < parents || v.moves == 0 {
		t.Errorf("%d writes, %d moves: nothing was shown", v.writes, v.moves)
	}
	for _, write := range v.foreign {
		t.Error(write)
	}
}
