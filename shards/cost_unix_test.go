// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shards_test

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/sharder"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/sandbox"
	"trueup.dev/shards"
)

var costParents = flag.Int("parents", 500, "the number of parents of TestReplicas_Cost")

const (
	// maxExtra is the bar for the part of the costs of a single replica that each of three replicas has, above its share
	// of the parents, which is about a third.
	maxExtra = 0.05
	// concurrentChanges is the number of parents that are changed at the same time.
	concurrentChanges = 8
	// calmLease is how long the Leases of these replicas last: none of them may be lost on a busy machine.
	calmLease = time.Minute
)

// settle waits until all parents and children are at the replicas where they belong, and have a number.
func settle(e *apitest.Env, n int, names ...string) {
	e.Helper()
	among := map[string]bool{}
	for _, name := range names {
		among[name] = true
	}
	var last error
	check := func(context.Context) (bool, error) {
		last = isSettled(e, n, among)
		return last == nil, nil
	}
	if err := wait.PollUntilContextTimeout(e.Context(), time.Second, 5*time.Minute, true, check); err != nil {
		e.Fatalf("%v: %v", err, last)
	}
}

// isSettled returns an error about a parent that is not settled.
func isSettled(e *apitest.Env, n int, among map[string]bool) error {
	e.Helper()
	secrets, parents := &corev1.SecretList{}, &metav1.PartialObjectMetadataList{}
	parents.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	e.Must(e.List(e.Context(), secrets, client.InNamespace(e.Namespace)))
	e.Must(e.List(e.Context(), parents, client.InNamespace(e.Namespace)))
	children := map[string]corev1.Secret{}
	for _, child := range secrets.Items {
		children[child.Name] = child
	}
	for _, parent := range parents.Items {
		if !strings.HasPrefix(parent.Name, "parent-") {
			continue
		}
		child, wants := children[parent.Name], sharder.Rendezvous(parent.Name, among)
		at, of := parent.Labels[shards.ShardLabel(ring)], child.Labels[shards.ShardLabel(ring)]
		if at != wants || of != wants || string(child.Data["n"]) != strconv.Itoa(n) || string(child.Data["by"]) != wants {
			return fmt.Errorf("%s is at %q, its child at %q with %s, want both at %q with n=%d",
				parent.Name, at, of, child.Data, wants, n)
		}
	}
	return nil
}

// settledCost returns the cost of a replica when it receives nothing more.
func settledCost(e *apitest.Env, r *replica) (now cost) {
	e.Helper()
	e.Eventually(func() error {
		before := now
		if now = r.cost(); now.Watched != before.Watched || now.Listed != before.Listed {
			return fmt.Errorf("%s received %+v after %+v", r.name, now, before)
		}
		return nil
	})
	return now
}

// TestReplicas_Cost measures the heap and the watch traffic of one replica, and of each of three replicas with the same
// objects. Each of the three has at most its share and five percent of what the single one has. All processes have
// started when the objects existed, and have written each of their children twice: client-go keeps some memory for each
// object that had an event, up to a limit, also when the object has moved.
func TestReplicas_Cost(t *testing.T) {
	if testing.Short() {
		t.Skip("creates, changes and moves many objects")
	}
	e := apitest.New(t, nil, sandbox.TestOptions{})
	parents := *costParents
	changeAll := func(n int) {
		t.Helper()
		var workers sync.WaitGroup
		for first := range concurrentChanges {
			workers.Go(func() {
				for i := first; i < parents; i += concurrentChanges {
					if err := change(e.Context(), e, i, n); err != nil {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
	}
	assign := func() (stop func()) {
		return e.Go("the sharder", func(ctx context.Context) error { return newSharder(e).Run(ctx, 2*time.Second) })
	}
	holds := func(name string) {
		t.Helper()
		apitest.Until(e, named(&coordinationv1.Lease{}, name), func(lease *coordinationv1.Lease) error {
			if holder := *lease.Spec.HolderIdentity; holder != name {
				return fmt.Errorf("the Lease %s is held by %q", name, holder)
			}
			return nil
		})
	}
	a := startReplica(e, "a", calmLease)
	stop := assign()
	e.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first"}})
	apitest.Until(e, named(&corev1.Secret{}, "first"), func(*corev1.Secret) error { return nil }) // the controller runs
	empty := settledCost(e, a)
	addParents(e, parents)
	settle(e, 1, "a")
	<-a.hold(syscall.SIGTERM)
	a.resume() // a process that has created nothing
	changeAll(2)
	settle(e, 2, "a")
	before := settledCost(e, a)
	changeAll(3)
	settle(e, 3, "a")
	alone := settledCost(e, a)

	stop()
	<-a.hold(syscall.SIGTERM)
	replicas := []*replica{}
	for _, name := range []string{"b", "c", "d"} {
		replicas = append(replicas, startReplica(e, name, calmLease))
		holds(name)
	}
	assign() // none of them has had all objects
	settle(e, 3, "b", "c", "d")
	moved := []cost{}
	for _, r := range replicas {
		moved = append(moved, settledCost(e, r))
	}
	changeAll(4)
	settle(e, 4, "b", "c", "d")

	heapAlone, watchedAlone := alone.Heap-empty.Heap, alone.Watched-before.Watched
	text := &strings.Builder{}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	row := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format+"\n", args...) }
	row("\tparents\theap of the process\tof the objects\twatch traffic of one change of each parent")
	row("one replica\t%d\t%.1f MB\t%.2f MB\t%.2f MB", parents, mb(alone.Heap), mb(heapAlone), mb(watchedAlone))
	for i, r := range replicas {
		now := settledCost(e, r)
		own := &metav1.PartialObjectMetadataList{}
		own.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		e.Must(e.List(e.Context(), own, client.InNamespace(e.Namespace),
			client.MatchingLabels{shards.ShardLabel(ring): r.name}))
		heap, watched := now.Heap-empty.Heap, now.Watched-moved[i].Watched
		ofHeap, ofWatched := float64(heap)/float64(heapAlone), float64(watched)/float64(watchedAlone)
		row("%s of three\t%d\t%.1f MB\t%.2f MB = %.1f %%\t%.2f MB = %.1f %%", r.name, len(own.Items), mb(now.Heap), mb(heap),
			100*ofHeap, mb(watched), 100*ofWatched)
		if most := float64(len(own.Items))/float64(parents) + maxExtra; ofHeap > most || ofWatched > most {
			t.Errorf("%s has %.1f %% of the heap and %.1f %% of the watch traffic of one replica, want at most %.1f %%",
				r.name, 100*ofHeap, 100*ofWatched, 100*most)
		}
	}
	e.Must(table.Flush())
	t.Log("a replica without objects has " + fmt.Sprintf("%.1f MB of heap\n", mb(empty.Heap)) + text.String())
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }
