// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
	"trueup.dev/observe/otel"
)

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	causedAt   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// play passes the events of reconciles of an object to a listener.
type play struct {
	to      observe.Listener
	causes  []observe.Cause // of the next reconcile
	omitted int
}

// run plays a reconcile that makes calls.
func (p *play) run(result reconcile.Result, err error, calls ...observe.Call) {
	run := &observe.Run{
		Controller: "website", Kind: configMaps, Object: blog.NamespacedName, Started: time.Now(), Causes: p.causes,
		OmittedCauses: p.omitted,
	}
	ctx := p.to.Observe(context.Background(), &observe.ReconcileStarted{Run: run})
	for _, call := range calls {
		call.Run = run
		p.to.Observe(ctx, &call)
	}
	p.to.Observe(ctx, &observe.ReconcileFinished{Run: run, Result: result, Err: err})
}

func version(version string) *corev1.ConfigMap {
	c := newConfigMap(blog.Name)
	c.ResourceVersion = version
	return c
}

// labeled has another label in each version.
func labeled(v string) *corev1.ConfigMap {
	c := version(v)
	c.Labels = map[string]string{"a": v}
	return c
}

// finalized is marked for deletion.
func finalized(v string) *corev1.ConfigMap {
	c := version(v)
	c.DeletionTimestamp = &metav1.Time{Time: causedAt}
	return c
}

func wrote(verb, after string) observe.Call {
	return observe.Call{Verb: verb, Kind: configMaps, Object: blog.NamespacedName, After: after}
}

// caused returns the cause of an event of the object.
func caused(of observe.CauseType, verb observe.Verb, before, after client.Object) observe.Cause {
	cause := observe.Cause{Type: of, Verb: verb, Kind: configMaps, Object: blog.NamespacedName, At: causedAt, Count: 1}
	cause.SetObjects(before, after)
	return cause
}

func TestWhyDidItRun(t *testing.T) {
	again := reconcile.Result{RequeueAfter: time.Minute}
	requeued := observe.Cause{Type: observe.CauseRequeue, After: time.Minute, Count: 1, At: causedAt}
	retried := observe.Cause{Type: observe.CauseRetry, Attempt: 2, Err: errQuota, Count: 1, At: causedAt}
	for name, tt := range map[string]struct {
		before  func(p *play)
		causes  []observe.Cause
		omitted int
		want    []string
	}{
		"a write of this process": {
			before: func(p *play) { p.run(reconcile.Result{}, nil, wrote(observe.VerbUpdate, "2")) },
			causes: []observe.Cause{caused(observe.CauseObject, observe.Updated, labeled("1"), labeled("2"))},
			want:   []string{`link to update ConfigMap type=Object verb=Updated changed=["labels"]`},
		},
		"a write of another process": {
			before: func(p *play) { p.run(reconcile.Result{}, nil, wrote(observe.VerbUpdate, "2")) },
			causes: []observe.Cause{caused(observe.CauseObject, observe.Updated, labeled("2"), labeled("3"))},
			want:   []string{`event trueup.cause type=Object verb=Updated changed=["labels"]`},
		},
		"a write that failed": {
			before: func(p *play) {
				call := wrote(observe.VerbUpdate, "2")
				call.Err = errQuota
				p.run(reconcile.Result{}, nil, call)
			},
			causes: []observe.Cause{caused(observe.CauseObject, observe.Updated, labeled("1"), labeled("2"))},
			want:   []string{`event trueup.cause type=Object verb=Updated changed=["labels"]`},
		},
		"a write that changed nothing": {
			before: func(p *play) {
				call := wrote(observe.VerbUpdate, "2")
				call.NoOp = true
				p.run(reconcile.Result{}, nil, call)
			},
			causes: []observe.Cause{caused(observe.CauseOwned, observe.Updated, labeled("1"), labeled("2"))},
			want:   []string{`event trueup.cause type=Owned verb=Updated changed=["labels"]`},
		},
		"a deletion": {
			before: func(p *play) { p.run(reconcile.Result{}, nil, wrote(observe.VerbDelete, "")) },
			causes: []observe.Cause{caused(observe.CauseOwned, observe.Deleted, nil, version("3"))},
			want:   []string{"link to delete ConfigMap type=Owned verb=Deleted"},
		},
		"a deletion of an object with a finalizer": {
			before: func(p *play) { p.run(reconcile.Result{}, nil, wrote(observe.VerbDelete, "")) },
			causes: []observe.Cause{caused(observe.CauseOwned, observe.Updated, version("2"), finalized("3"))},
			want:   []string{`link to delete ConfigMap type=Owned verb=Updated changed=["deletionTimestamp"]`},
		},
		"a resync after a write": {
			before: func(p *play) { p.run(reconcile.Result{}, nil, wrote(observe.VerbUpdate, "2")) },
			causes: []observe.Cause{caused(observe.CauseResync, observe.Updated, labeled("2"), labeled("2"))},
			want:   []string{"event trueup.cause type=Resync verb=Updated"},
		},
		"an event without an object": {
			before: func(p *play) { p.run(reconcile.Result{}, nil, wrote(observe.VerbDelete, "")) },
			causes: []observe.Cause{{Type: observe.CauseSource, Verb: observe.Generic, Count: 3, At: causedAt}},
			want:   []string{"event trueup.cause type=Source verb=Generic count=3"},
		},
		"a requeue": {
			before: func(p *play) { p.run(again, nil, wrote(observe.VerbUpdate, "2")) },
			causes: []observe.Cause{requeued},
			want:   []string{"link to reconcile website type=Requeue trueup.delay=60"},
		},
		"a requeue of a reconcile that is not traced": {
			before: func(p *play) {
				p.run(again, nil, wrote(observe.VerbUpdate, "2"))
				p.run(again, nil)
			},
			causes: []observe.Cause{requeued},
			want:   []string{"event trueup.cause type=Requeue trueup.delay=60"},
		},
		"a requeue that a later reconcile did not request": {
			before: func(p *play) {
				p.run(again, nil, wrote(observe.VerbUpdate, "2"))
				p.run(reconcile.Result{}, nil, wrote(observe.VerbUpdate, "3"))
			},
			causes: []observe.Cause{requeued},
			want:   []string{"event trueup.cause type=Requeue trueup.delay=60"},
		},
		"a retry": {
			before: func(p *play) { p.run(reconcile.Result{}, errQuota) },
			causes: []observe.Cause{retried},
			want:   []string{"link to reconcile website type=Retry attempt=2 error=quota exceeded"},
		},
		"several causes": {
			before: func(p *play) { p.run(reconcile.Result{}, errQuota, wrote(observe.VerbPatch, "2")) },
			causes: []observe.Cause{
				caused(observe.CauseTracked, observe.Updated, labeled("1"), labeled("2")),
				{Type: observe.CauseUnknown, Count: 1, At: causedAt},
				retried,
			},
			omitted: 7,
			want: []string{
				"event trueup.cause type=Unknown",
				`link to patch ConfigMap type=Tracked verb=Updated changed=["labels"]`,
				"link to reconcile website type=Retry attempt=2 error=quota exceeded",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			provider, exported := newProvider()
			p := &play{to: otel.New(provider, otel.Options{})}
			tt.before(p)
			exportedBefore := len(exported.GetSpans())
			p.causes, p.omitted = tt.causes, tt.omitted
			p.run(reconcile.Result{}, nil, wrote(observe.VerbUpdate, "9"))
			spans := exported.GetSpans()
			root := spans[len(spans)-1]
			got := drawing{keys: []string{"trueup.cause.", "trueup.delay"}}.notes(root, spans)
			omitted := attribute.Int("trueup.reconcile.omitted_causes", tt.omitted)
			if slices.Contains(root.Attributes, omitted) != (tt.omitted > 0) {
				t.Errorf("attributes: %v", root.Attributes)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			for _, e := range root.Events {
				if !e.Time.Equal(causedAt) {
					t.Errorf("time of the cause: %v", e.Time)
				}
			}
			if len(spans) != exportedBefore+2 {
				t.Errorf("exported %d spans for a reconcile with one call", len(spans)-exportedBefore)
			}
		})
	}
}

// TestWhatElseHappened tests the events that are not causes, steps or calls.
func TestWhatElseHappened(t *testing.T) {
	provider, exported := newProvider()
	listener := otel.New(provider, otel.Options{})
	run := &observe.Run{Controller: "website", Causes: []observe.Cause{{Type: observe.CauseUnknown, Count: 1}}}
	ctx := listener.Observe(t.Context(), &observe.ReconcileStarted{Run: run})
	for _, event := range []observe.Event{
		&observe.Tracked{Run: run, Kind: schema.GroupKind{Kind: "Secret"}, Namespace: "default", Name: "password"},
		&observe.Tracked{Run: run, Kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Selector: "a=b"},
		&observe.StaleWait{Run: run, Wait: time.Second},
		&observe.LoopFound{Run: run, Reconciles: 20, Within: 3 * time.Second, Repeats: []string{"data[a]"}},
		&observe.ReconcileFinished{Run: run, Result: reconcile.Result{RequeueAfter: time.Second}},
	} {
		listener.Observe(ctx, event)
	}
	expect(t,
		drawing{keys: []string{"k8s.", "trueup.delay", "trueup.loop.", "trueup.tracked.", "trueup.reconcile.result"}},
		exported.GetSpans(),
		"reconcile website trueup.reconcile.result=requeue_after",
		"  event trueup.tracked k8s.namespace.name=default name=password kind=Secret",
		"  event trueup.tracked kind=Deployment trueup.tracked.group=apps trueup.tracked.selector=a=b",
		"  event trueup.stale_wait trueup.delay=1",
		`  event trueup.loop trueup.loop.reconciles=20 trueup.loop.duration=3 trueup.loop.repeats=["data[a]"]`,
		"  event trueup.cause",
	)
}

// TestHowLongAreCausesKnown tests that the memory of the listener is limited: it forgets the oldest writes.
func TestHowLongAreCausesKnown(t *testing.T) {
	const known = 10_000
	provider, exported := newProvider()
	p := &play{to: otel.New(provider, otel.Options{MaxSpans: 2})}
	writes := []observe.Call{}
	for i := range known + 1 {
		writes = append(writes, wrote(observe.VerbUpdate, fmt.Sprint(i)))
	}
	p.run(reconcile.Result{}, nil, writes...)
	for version, isKnown := range map[string]bool{"0": false, "1": true, fmt.Sprint(known): true} {
		p.causes = []observe.Cause{caused(observe.CauseObject, observe.Updated, labeled("other"), labeled(version))}
		p.run(reconcile.Result{}, errQuota)
		spans := exported.GetSpans()
		root := spans[len(spans)-1]
		if len(root.Links) > 0 != isKnown {
			t.Errorf("version %s: links %v, want one: %t", version, root.Links, isKnown)
		}
	}
}
