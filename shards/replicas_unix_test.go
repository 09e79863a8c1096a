// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shards_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/sharder"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/sandbox"
	"trueup.dev/shards"
)

var rounds = flag.Int("rounds", 1, "how often TestReplicas ends, kills and pauses a replica")

// replica is a process that runs runReplica. It is started again when it ends, as kubelet does, unless it is held.
type replica struct {
	e    *apitest.Env
	name string

	mu      sync.Mutex
	held    bool
	process *exec.Cmd
	output  bytes.Buffer
	ended   chan struct{}
}

func startReplica(e *apitest.Env, name string) *replica {
	e.Helper()
	r := &replica{e: e, name: name}
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
		kubeconfigVariable+"="+r.e.KubeconfigPath())
	cmd.Stderr = &r.output
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
		r.e.Must(r.process.Process.Signal(syscall.SIGCONT))
	}
}

// seen is a state of an object in the history of the API server.
type seen struct {
	version uint64
	at      time.Time
	secret  bool
	name    string
	labels  map[string]string
	shard   string
	n, by   string
}

// history records the states of all ConfigMaps and Secrets.
type history struct {
	mu     sync.Mutex
	states []seen
}

func (h *history) record(e *apitest.Env) {
	e.Helper()
	c, err := client.NewWithWatch(e.RESTConfig(), client.Options{})
	e.Must(err)
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}} {
		e.Must(c.List(e.Context(), list, client.InNamespace(e.Namespace)))
		events, err := c.Watch(e.Context(), list, client.InNamespace(e.Namespace), &client.ListOptions{
			Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
		})
		e.Must(err)
		go func() {
			for event := range events.ResultChan() {
				h.add(event)
			}
		}()
		e.Cleanup(events.Stop)
	}
}

func (h *history) add(event watch.Event) {
	obj, err := meta.Accessor(event.Object)
	if err != nil {
		return // an error, with which the watch ends
	}
	state := seen{at: time.Now(), name: obj.GetName(), labels: obj.GetLabels()}
	state.shard = state.labels[shards.ShardLabel(ring)]
	state.version, _ = strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	switch obj := event.Object.(type) {
	case *corev1.ConfigMap:
		state.n = obj.Data["n"]
	case *corev1.Secret:
		state.secret, state.n, state.by = true, string(obj.Data["n"]), string(obj.Data["by"])
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states = append(h.states, state)
}

// verdict is what the history shows.
type verdict struct {
	writes, moves int
	// foreign are the writes of a child by a shard that did not have its parent.
	foreign []string
	// slowest is the longest time from a change of a parent to the change of its child, and of is the parent.
	slowest time.Duration
	of      seen
	// behind are the parents whose last change has not reached the child.
	behind []string
}

// sorted returns the states in the order in which the API server has stored them.
func (h *history) sorted() []seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(slices.Values(h.states), func(a, b seen) int { return cmp.Compare(a.version, b.version) })
}

func (h *history) judge(since time.Time) (v verdict) {
	states := h.sorted()
	parents, children, waiting := map[string]seen{}, map[string]seen{}, map[string]time.Time{}
	for _, s := range states {
		if !s.secret {
			before, existed := parents[s.name]
			if existed && before.shard != s.shard && s.shard != "" && s.at.After(since) {
				v.moves++
			}
			if _, waits := waiting[s.name]; !waits && before.n != s.n {
				waiting[s.name] = s.at
			}
			parents[s.name] = s
			continue
		}
		before, parent := children[s.name], parents[s.name]
		children[s.name] = s
		if before.n == s.n && before.by == s.by {
			continue // another label
		}
		if v.writes++; s.by != parent.shard {
			v.foreign = append(v.foreign, fmt.Sprintf("%s: written by %s at version %d, assigned to %q at version %d; "+
				"its states:%s", s.name, s.by, s.version, parent.shard, parent.version, lastStates(states, s)))
		}
		if from, waits := waiting[s.name]; waits && s.n == parent.n {
			delete(waiting, s.name)
			if took := s.at.Sub(from); took > v.slowest && from.After(since) {
				v.slowest, v.of = took, s
			}
		}
	}
	for name := range waiting {
		v.behind = append(v.behind, name)
	}
	slices.Sort(v.behind)
	return v
}

// lastStates returns the states of a parent and its child until one of them.
func lastStates(states []seen, until seen) (text string) {
	same := slices.DeleteFunc(slices.Clone(states), func(s seen) bool {
		return s.name != until.name || s.version > until.version
	})
	for _, s := range same[max(0, len(same)-12):] {
		kind := "ConfigMap"
		if s.secret {
			kind = "Secret"
		}
		text += fmt.Sprintf("\n\t%s %d %s %s: n=%s by=%s labels=%v",
			s.at.Format("05.000"), s.version, kind, s.name, s.n, s.by, s.labels)
	}
	return text
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
			parent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: e.Namespace, Name: fmt.Sprintf("parent-%d", rand.IntN(parents)),
			}}
			patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n))
			if err := e.Patch(ctx, parent, patch); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// TestReplicas runs three processes under load, and ends, kills and pauses them. No child may be written by a process
// that does not have its parent, and no parent may wait for longer than two Leases: the sharder takes over a Lease
// when it has been expired for as long as it lasts.
func TestReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for Leases to expire, for a minute")
	}
	t.Parallel()
	const parents = 60
	e := apitest.New(t, nil, sandbox.TestOptions{})
	h := &history{}
	h.record(e)
	assigns := &sharder.Sharder{Client: e.Client, Ring: ring, Namespace: e.Namespace, Resources: []sharder.Resource{{
		Kind:       corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		Controlled: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret")},
	}}}
	e.Go("the sharder", func(ctx context.Context) error { return assigns.Run(ctx, 100*time.Millisecond) })
	replicas := []*replica{}
	for _, name := range []string{"a", "b", "c"} {
		replicas = append(replicas, startReplica(e, name))
	}
	for i := range parents {
		e.Add(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("parent-%d", i)}, Data: map[string]string{"n": "1"},
		})
	}
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
		if v := h.judge(time.Time{}); v.writes < parents {
			return fmt.Errorf("%d children were written, want %d", v.writes, parents)
		}
		return nil
	})
	stopLoad := e.Go("the load", load(e, parents))

	const slack = 10 * time.Second // for a machine that does something else
	for i := range 3 * *rounds {
		phase := []struct {
			name   string
			signal os.Signal
			most   time.Duration
		}{
			{"ended", syscall.SIGTERM, slack},
			{"killed", syscall.SIGKILL, 2*leaseDuration + slack},
			{"paused", syscall.SIGSTOP, 2*leaseDuration + slack},
		}[i%3]
		since, r := time.Now(), replicas[rand.IntN(len(replicas))]
		r.hold(phase.signal)
		e.Eventually(func() error { // its objects move to the others
			list := &corev1.ConfigMapList{}
			e.Must(e.List(e.Context(), list, client.InNamespace(e.Namespace),
				client.MatchingLabels{shards.ShardLabel(ring): r.name}))
			if len(list.Items) > 0 {
				return fmt.Errorf("%s still has %d objects", r.name, len(list.Items))
			}
			return nil
		})
		r.resume()
		settled() // some move back
		v := h.judge(since)
		t.Logf("%s %s: %d moves; the slowest change took %s", r.name, phase.name, v.moves, v.slowest.Round(time.Millisecond))
		if v.slowest > phase.most {
			t.Errorf("%s %s: the change of %s took %s, want at most %s; its states:%s", r.name, phase.name, v.of.name, v.slowest,
				phase.most, lastStates(h.sorted(), v.of))
		}
	}
	stopLoad()
	e.Eventually(func() error {
		if v := h.judge(time.Time{}); len(v.behind) > 0 {
			return fmt.Errorf("behind: %v", v.behind)
		}
		return nil
	})
	v := h.judge(time.Time{})
	t.Logf("%d writes of children, %d moves of parents", v.writes, v.moves)
	if v.writes < parents || v.moves == 0 {
		t.Errorf("%d writes, %d moves: nothing was shown", v.writes, v.moves)
	}
	for _, write := range v.foreign {
		t.Error(write)
	}
}
