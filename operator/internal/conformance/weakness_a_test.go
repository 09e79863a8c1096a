// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

const finalizer = "conformance.trueup.dev/test"

var errTest = errors.New("failure of the test")

type handler = reconcilers.SubReconciler[*fixture.Resource]

// opinionated and plain are the two ways to call a watcher. changes adapt the handler to the test.
func opinionated(n *notebook[*fixture.Resource], changes ...func(*operator.WithEdge[*fixture.Resource])) handler {
	o := operator.OpinionatedWatcher(finalizer, n)
	for _, change := range changes {
		change(o.Handler)
	}
	return o
}

func plain(n *notebook[*fixture.Resource], changes ...func(*operator.WithEdge[*fixture.Resource])) handler {
	w := operator.WatcherReconciler(n)
	for _, change := range changes {
		change(w)
	}
	return w
}

var styles = map[string]func(*notebook[*fixture.Resource], ...func(*operator.WithEdge[*fixture.Resource])) handler{
	"opinionated": opinionated, "plain": plain,
}

// every sets a retry policy with a constant delay.
func every(d time.Duration) func(*operator.WithEdge[*fixture.Resource]) {
	return func(r *operator.WithEdge[*fixture.Resource]) {
		r.RetryPolicy = func(error, int) (bool, time.Duration) { return true, d }
	}
}

// failsOn returns an error for these lines, once for each occurrence.
func failsOn(lines ...string) func(string, *fixture.Resource) error {
	return func(line string, _ *fixture.Resource) error {
		if i := slices.Index(lines, line); i >= 0 {
			lines = slices.Delete(lines, i, i+1)
			return errTest
		}
		return nil
	}
}

func TestWeaknessA1_StaleRetryIsNeverApplied(t *testing.T) {
	for style, make := range styles {
		t.Run(style, func(t *testing.T) {
			inLab(t, func(l *lab) {
				n := &notebook[*fixture.Resource]{answer: failsOn("Add a 1", "Update a 2>3")}
				l.start(controller(make(n, every(5*time.Second))))
				l.must(l.Create(l.Context(), newResource("a", "1")))
				l.pass(time.Second)
				n.wantLines(t, "Add a 1")

				changeIn(l, newResource("a", ""), setValue("2"))
				l.pass(time.Second)
				n.wantLines(t, "Add a 2") // a failed Add is retried with the current object

				changeIn(l, newResource("a", ""), setValue("3"))
				l.pass(time.Second)
				n.wantLines(t, "Update a 2>3")
				// A label does not shorten the delay of the retry, but the retry receives the current object.
				changeIn(l, newResource("a", ""), func(r *fixture.Resource) { r.Labels = map[string]string{"new": "label"} })
				l.pass(time.Second)
				n.wantLines(t)
				labels := &notes{}
				n.answers(func(_ string, r *fixture.Resource) error { labels.add(r.Labels["new"]); return nil })
				l.pass(24 * time.Hour)
				n.wantLines(t, "Update a 2>3")
				labels.wantLines(t, "label")
			})
		})
	}
}

func TestWeaknessA2_DeleteRetryNeverAffectsTheNextObject(t *testing.T) {
	inLab(t, func(l *lab) {
		alive := sync.Map{}
		n := &notebook[*fixture.Resource]{}
		failing := failsOn("Delete a 1", "Delete a 1", "Delete a 1")
		n.answer = func(line string, r *fixture.Resource) error {
			if _, there := alive.Load(r.UID); there && strings.HasPrefix(line, "Delete") {
				t.Errorf("%s for an object that exists", line)
			}
			return failing(line, r)
		}
		l.start(controller(plain(n, every(5*time.Second))))
		for _, value := range []string{"1", "2"} {
			r := newResource("a", value)
			l.must(l.Create(l.Context(), r))
			alive.Store(r.UID, true)
			l.pass(time.Second)
			if value == "1" {
				l.must(l.Delete(l.Context(), r))
				alive.Delete(r.UID)
				l.pass(time.Second)
			}
		}
		n.wantLines(t, "Add a 1", "Delete a 1")
		l.pass(time.Hour)
		n.wantLines(t, "Delete a 1", "Delete a 1", "Delete a 1", "Add a 2")
	})
}

func TestWeaknessA4_RetriesAndEventsDoNotOverlap(t *testing.T) {
	inLab(t, func(l *lab) {
		random := rand.New(rand.NewPCG(4, 2))
		n := &notebook[*fixture.Resource]{answer: func(string, *fixture.Resource) error {
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
			if rand.IntN(3) == 0 {
				return errTest
			}
			return nil
		}}
		l.start(controller(plain(n, every(time.Second))))
		const objects = 8
		for i := range objects {
			l.must(l.Create(l.Context(), newResource(strconv.Itoa(i), "0")))
		}
		for step := range 400 {
			changeIn(l, newResource(strconv.Itoa(random.IntN(objects)), ""), setValue(strconv.Itoa(step)))
			l.pass(time.Duration(random.IntN(500)) * time.Millisecond)
		}
		n.answers(nil)
		l.pass(time.Hour)
		if calls := len(n.all()); n.overlapping() > 0 || calls < objects {
			t.Errorf("of %d calls %d overlap another one for the same object", calls, n.overlapping())
		}
	})
}

func TestWeaknessA5_SupersededRetryNeverRuns(t *testing.T) {
	inLab(t, func(l *lab) {
		// The object changes before the first call fails.
		n := &notebook[*fixture.Resource]{answer: func(line string, _ *fixture.Resource) error {
			if line == "Add a 1" {
				time.Sleep(10 * time.Second)
				return errTest
			}
			return nil
		}}
		l.start(controller(opinionated(n, every(5*time.Second))))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.pass(2 * time.Second)
		changeIn(l, newResource("a", ""), setValue("2"))
		l.pass(24 * time.Hour)
		n.wantLines(t, "Add a 1", "Add a 2")
	})
}

// poller is a Reconciler that asks to be called every minute, and records the objects.
func poller(seen *notes) operator.Reconciler {
	return &operator.TypedReconciler[*fixture.Resource]{
		ReconcileFunc: func(
			_ context.Context, req operator.TypedReconcileRequest[*fixture.Resource],
		) (operator.ReconcileResult, error) {
			seen.add(req.Action, " ", valueOf(req.Object))
			return operator.ReconcileResult{RequeueAfter: time.Minute}, nil
		},
	}
}

func TestWeaknessA6_OneTimerPerObject(t *testing.T) {
	inLab(t, func(l *lab) {
		seen := &notes{}
		l.start(controller[*fixture.Resource](operator.NewOpinionated[*fixture.Resource](finalizer, poller(seen))))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.pass(time.Second)
		for i := range 1000 {
			r := newResource("a", "")
			l.must(l.Get(l.Context(), client.ObjectKeyFromObject(r), r))
			r.Status.Fields = map[string]string{"i": strconv.Itoa(i)}
			l.must(l.Status().Update(l.Context(), r))
			synctest.Wait()
		}
		seen.take()
		l.pass(10 * time.Minute)
		seen.wantLines(t, slices.Repeat([]string{"Created 1"}, 10)...) // and not 1000 times as many
		changeIn(l, newResource("a", ""), setValue("2"))
		l.pass(time.Second)
		seen.take()
		l.pass(3 * time.Minute)
		seen.wantLines(t, slices.Repeat([]string{"Updated 2"}, 3)...)
	})
}

// A plain handler reacts to every change: a pending call does not delay changes, and only one timer exists.
func TestWeaknessA6_PollingDoesNotDelayChanges(t *testing.T) {
	inLab(t, func(l *lab) {
		seen := &notes{}
		l.start(controller[*fixture.Resource](operator.AsSubReconciler[*fixture.Resource](poller(seen))))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.pass(time.Second)
		for i := range 5 {
			changeIn(l, newResource("a", ""), func(r *fixture.Resource) { r.Labels = map[string]string{"i": strconv.Itoa(i)} })
			l.pass(time.Second)
		}
		seen.wantLines(t, "Created 1", "Updated 1", "Updated 1", "Updated 1", "Updated 1", "Updated 1")
		l.pass(10 * time.Minute)
		seen.wantLines(t, slices.Repeat([]string{"Updated 1"}, 10)...)
	})
}

// spoil changes every part of an object.
func spoil(obj *fixture.Resource) {
	for _, m := range []map[string]string{obj.Labels, obj.Annotations, obj.Spec.Fields, obj.Status.Fields} {
		for k := range m {
			m[k] = "spoilt"
		}
	}
	for i := range obj.Finalizers {
		obj.Finalizers[i] = "spoilt.example.com/x"
	}
	for i := range obj.Status.Conditions {
		obj.Status.Conditions[i].Message = "spoilt"
	}
	*obj = fixture.Resource{Status: obj.Status}
	obj.Status.ObservedGeneration = 77
}

func TestWeaknessA9_HandlersCannotChangeTheCache(t *testing.T) {
	for style, make := range styles {
		t.Run(style, func(t *testing.T) {
			inLab(t, func(l *lab) {
				n := &notebook[*fixture.Resource]{answer: func(_ string, r *fixture.Resource) error { spoil(r); return nil }}
				spoiler := operator.TypedReconciler[*fixture.Resource]{
					ReconcileFunc: func(
						ctx context.Context, req operator.TypedReconcileRequest[*fixture.Resource],
					) (operator.ReconcileResult, error) {
						if previous, ok := operator.PreviousFrom[*fixture.Resource](ctx); ok {
							spoil(previous)
						}
						spoil(req.Object)
						return operator.ReconcileResult{}, nil
					},
				}
				var inCache func() *fixture.Resource
				l.start(controller(make(n), operator.AsSubReconciler[*fixture.Resource](&spoiler)), l.lookIntoCache(&inCache))
				r := newResource("a", "1")
				r.Labels, r.Annotations = map[string]string{"l": "1"}, map[string]string{"a": "1"}
				l.must(l.Create(l.Context(), r))
				l.pass(time.Second)
				for value := range 5 {
					changeIn(l, newResource("a", ""), setValue(strconv.Itoa(value+2)))
					l.pass(time.Second)
					stored := newResource("a", "")
					l.must(l.Get(l.Context(), client.ObjectKeyFromObject(stored), stored))
					if diff := cmp.Diff(stored, inCache()); diff != "" {
						t.Errorf("the cache is not what is stored (-stored +cached):\n%s", diff)
					}
				}
				// The previous state also comes from the cache.
				n.wantLines(t, "Add a 1", "Update a 1>2", "Update a 2>3", "Update a 3>4", "Update a 4>5", "Update a 5>6")
			})
		})
	}
}

func TestWeaknessA7_BuiltInKindsKeepTheirOrder(t *testing.T) {
	e := newEnv(t)
	const objects, updates = 5, 20
	last := map[string]int{}
	n := &notebook[*corev1.ConfigMap]{}
	n.answer = func(line string, cm *corev1.ConfigMap) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		value, _ := strconv.Atoi(valueOf(cm))
		if from, _, ok := strings.Cut(line, ">"); ok && !strings.HasSuffix(from, " "+strconv.Itoa(last[cm.Name])) ||
			value < last[cm.Name] {
			t.Errorf("%s follows after %d", line, last[cm.Name])
		}
		last[cm.Name] = value
		return nil
	}
	for i := range objects / 2 { // half from the list, half from the watch
		e.create(newConfigMap(fmt.Sprint("cm-", i), "0"))
	}
	e.start(controller(reconcilers.SubReconciler[*corev1.ConfigMap](operator.WatcherReconciler(n))))
	for i := objects / 2; i < objects; i++ {
		e.create(newConfigMap(fmt.Sprint("cm-", i), "0"))
	}
	for value := range updates {
		for i := range objects {
			change(e, newConfigMap(fmt.Sprint("cm-", i), ""), func(cm *corev1.ConfigMap) {
				cm.Data["value"] = strconv.Itoa(value + 1)
			})
		}
	}
	e.Eventually(func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		for i := range objects {
			if got := last[fmt.Sprint("cm-", i)]; got != updates {
				return fmt.Errorf("cm-%d is handled up to %d", i, got)
			}
		}
		return nil
	})
	if n.overlapping() > 0 {
		t.Errorf("%d calls overlap another one for the same object", n.overlapping())
	}
}
