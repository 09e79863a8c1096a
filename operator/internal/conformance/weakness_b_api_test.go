// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
)

// hasFinalizers is a check for until.
func hasFinalizers(want ...string) func(*fixture.Resource) error {
	return func(r *fixture.Resource) error {
		if diff := cmp.Diff(want, r.Finalizers); diff != "" {
			return fmt.Errorf("finalizers (-want +got):\n%s", diff)
		}
		return nil
	}
}

func TestWeaknessB2_DeletionDuringTheFirstCallIsHandled(t *testing.T) {
	for name, outcome := range map[string]error{
		"which succeeds": nil, "which fails": errTest, "which asks for more time": operator.RequeueAfter(apitest.Timeout),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			n := &notebook[*fixture.Resource]{}
			r := newResource("a", "1")
			n.answer = func(line string, _ *fixture.Resource) error {
				if line != "Add a 1" {
					return nil
				}
				e.remove(newResource("a", ""))
				return outcome
			}
			e.start(controller(opinionated(n, every(apitest.Timeout))))
			e.create(r)
			n.awaitLines(t, "Add a 1", "Delete a 1")
			e.gone(newResource("a", ""))
			n.wantLines(t)
		})
	}
}

func TestWeaknessB3_StrippedFinalizerIsRestored(t *testing.T) {
	e := newEnv(t)
	n := &notebook[*fixture.Resource]{}
	e.start(controller(opinionated(n)))
	r := newResource("a", "1")
	r.Finalizers = []string{"example.com/of-another-controller"}
	e.create(r)
	n.awaitLines(t, "Add a 1")
	until(e, r, hasFinalizers("example.com/of-another-controller", finalizer))
	change(e, r, func(r *fixture.Resource) { r.Finalizers = r.Finalizers[:1] })
	until(e, r, hasFinalizers("example.com/of-another-controller", finalizer))
	n.wantLines(t) // no reason to call the handler
	e.remove(r)
	n.awaitLines(t, "Delete a 1")
	until(e, r, hasFinalizers("example.com/of-another-controller"))
}

func TestWeaknessB6_ForcedDeletionIsDeliveredOnce(t *testing.T) {
	e := newEnv(t)
	release := make(chan struct{})
	n := &notebook[*fixture.Resource]{answer: func(line string, _ *fixture.Resource) error {
		if line == "Add busy 1" {
			<-release
		}
		return nil
	}}
	e.start(singly(opinionated(n)))
	a := newResource("a", "1")
	e.create(a)
	n.awaitLines(t, "Add a 1")
	until(e, a, hasFinalizers(finalizer))

	// The only worker handles another object while the finalizer is removed.
	e.create(newResource("busy", "1"))
	n.awaitLines(t, "Add busy 1")
	change(e, a, func(r *fixture.Resource) {
		r.Finalizers = nil
		setValue("2")(r)
	})
	e.remove(a)
	e.gone(newResource("a", ""))
	close(release)
	n.awaitLines(t, "Delete a 2") // as it was last known, although that state was never handled
	e.create(newResource("last", "1"))
	n.awaitLines(t, "Add last 1") // and nothing else
}

// withoutSync is a watcher without Sync.
type withoutSync[T client.Object] struct{ operator.TypedWatcher[T] }

func TestWeaknessB7_ChangeWhileDownReachesAWatcherWithoutSync(t *testing.T) {
	for style, handle := range map[string]func(operator.TypedWatcher[*fixture.Resource]) handler{
		"opinionated": func(w operator.TypedWatcher[*fixture.Resource]) handler {
			return operator.OpinionatedWatcher(finalizer, w)
		},
		"plain": func(w operator.TypedWatcher[*fixture.Resource]) handler { return operator.WatcherReconciler(w) },
	} {
		t.Run(style, func(t *testing.T) {
			e := newEnv(t)
			n := &notebook[*fixture.Resource]{}
			stop := e.start(controller(handle(withoutSync[*fixture.Resource]{n})))
			e.create(newResource("a", "1"))
			n.awaitLines(t, "Add a 1")
			if style == "opinionated" {
				until(e, newResource("a", ""), isObserved)
			}
			stop()
			n.take()
			change(e, newResource("a", ""), setValue("2"))
			e.start(controller(handle(withoutSync[*fixture.Resource]{n})))
			n.awaitLines(t, "Add a 2")
		})
	}
}

func isObserved(r *fixture.Resource) error {
	if r.Status.ObservedGeneration != r.Generation {
		return fmt.Errorf("generation %d of %d is observed", r.Status.ObservedGeneration, r.Generation)
	}
	return nil
}

func TestWeaknessB9_FinalizerIsRenamed(t *testing.T) {
	e := newEnv(t)
	n := &notebook[*fixture.Resource]{}
	const former, oldest = "conformance.trueup.dev/v1-test", "conformance.trueup.dev/v0-test"
	stop := e.start(controller[*fixture.Resource](operator.OpinionatedWatcher(former, n)))
	for _, name := range []string{"stays", "goes"} {
		e.create(newResource(name, "1"))
		n.awaitLines(t, "Add "+name+" 1")
		until(e, newResource(name, ""), isObserved)
	}
	stop()
	e.remove(newResource("goes", ""))
	ancient := newResource("ancient", "1")
	ancient.Finalizers = []string{oldest}
	e.create(ancient)
	e.remove(ancient)

	o := operator.OpinionatedWatcher(finalizer, n)
	o.Aliases = []string{former, oldest}
	e.start(controller[*fixture.Resource](o))
	until(e, newResource("stays", ""), hasFinalizers(finalizer))
	e.gone(newResource("goes", ""))
	e.gone(newResource("ancient", ""))
	var got []string
	e.Eventually(func() error { // the finalizer is replaced before Sync is called
		got = append(got, n.take()...)
		slices.Sort(got)
		if diff := cmp.Diff([]string{"Delete ancient 1", "Delete goes 1", "Sync stays 1"}, got); diff != "" {
			return fmt.Errorf("calls (-want +got):\n%s", diff)
		}
		return nil
	})
	e.remove(newResource("stays", ""))
	e.gone(newResource("stays", ""))
	n.awaitLines(t, "Delete stays 1")
}
