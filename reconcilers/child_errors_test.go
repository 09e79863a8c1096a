// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

var (
	configMapResource = schema.GroupResource{Resource: "configmaps"}
	errExists         = apierrs.NewAlreadyExists(configMapResource, "child")
	errForbidden      = apierrs.NewForbidden(configMapResource, "child", errTest)
	errTooLarge       = apierrs.NewInternalError(errors.New("etcdserver: request is too large"))
	errWebhook        = apierrs.NewInternalError(errors.New("failed calling webhook"))
	errNotFound       = apierrs.NewNotFound(configMapResource, "child")
)

func TestChildReconciler_ReflectedErrors(t *testing.T) {
	other := func(cm *corev1.ConfigMap) { cm.Namespace = "other" }
	reasons := func(reasons ...metav1.StatusReason) map[string]any {
		return changes(func(r *childReconciler) { r.ReflectedChildErrorReasons = reasons })
	}
	fails := func(create error, tc subReconcilerCase) subReconcilerCase {
		tc.WithReactors = failing("create", "ConfigMap", create)
		tc.ExpectEvents = events{warning("CreationFailed", `Failed to create ConfigMap "child": `+create.Error())}
		return tc
	}
	reflects := func(create error, tc subReconcilerCase) subReconcilerCase {
		tc.ExpectResource = newResource(reflecting("nothing: " + create.Error()))
		return fails(create, tc)
	}
	returns := func(create error, tc subReconcilerCase) subReconcilerCase {
		if tc.ShouldErr = true; tc.Verify == nil {
			tc.Verify = failsWith(create)
		}
		return fails(create, tc)
	}
	track := func(name string) []rtesting.TrackRequest {
		return []rtesting.TrackRequest{rtesting.NewTrackRequest(wanted(name), newResource(), scheme)}
	}
	unreadable := func(builder *fake.ClientBuilder) *fake.ClientBuilder {
		return builder.WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errTest
			},
		})
	}
	errAnother := apierrs.NewAlreadyExists(configMapResource, "another")

	cases := subReconcilerTests{
		// The user can fix these errors, but a retry cannot.
		"forbidden":               reflects(errForbidden, subReconcilerCase{}),
		"invalid":                 reflects(errInvalid, subReconcilerCase{}),
		"too large":               reflects(apierrs.NewRequestEntityTooLargeError("limit is 3145728"), subReconcilerCase{}),
		"too large for etcd":      reflects(errTooLarge, subReconcilerCase{}),
		"fields of other clients": reflects(&reconcilers.FieldConflictError{Object: "it"}, subReconcilerCase{}),
		// Object managers may wrap errors.
		"wrapped": reflects(fmt.Errorf("wrapped: %w", errInvalid), subReconcilerCase{}),
		// These errors do not concern the child.
		"conflict":     returns(errConflict, subReconcilerCase{}),
		"no API error": returns(errTest, subReconcilerCase{}),
		// ReflectedChildErrorReasons replaces the default.
		"a reason of the author's choice": reflects(errConflict, subReconcilerCase{
			Metadata: reasons(metav1.StatusReasonConflict),
		}),
		"not a reason of the author's choice": returns(errInvalid, subReconcilerCase{
			Metadata: reasons(metav1.StatusReasonConflict),
		}),
		// An empty slice does not select the default.
		"no reasons": returns(errInvalid, subReconcilerCase{Metadata: reasons([]metav1.StatusReason{}...)}),
		// The conflicting object is read from the API server and tracked: its deletion triggers the parent.
		"name is taken": reflects(errExists, subReconcilerCase{
			APIGivenObjects: objects{newConfigMap("child", orphan)}, ExpectTracks: track("child"),
		}),
		// The name of the conflicting object is also found in a wrapped error.
		"name is taken, wrapped": reflects(fmt.Errorf("wrapped: %w", errExists), subReconcilerCase{
			APIGivenObjects: objects{newConfigMap("child", orphan)}, ExpectTracks: track("child"),
		}),
		// The name in the error has precedence.
		"name is taken, another one than desired": reflects(errAnother, subReconcilerCase{
			APIGivenObjects: objects{newConfigMap("another", orphan)}, ExpectTracks: track("another"),
		}),
		// Without owner references, the user tracks the object.
		"name is taken, no owner references": reflects(errExists, subReconcilerCase{
			APIGivenObjects: objects{newConfigMap("child", orphan)}, ExpectCreates: objects{wanted("child")},
			Metadata: changes(withoutOwner, func(r *childReconciler) {
				r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["ours"] != "" }
			}),
		}),
		// The conflicting object was created by an earlier request and has not reached the cache yet.
		"stale cache": returns(errExists, subReconcilerCase{APIGivenObjects: objects{newConfigMap("child")}}),
		// If the name is no longer taken, the conflict is not reported on the status.
		"conflicting object was deleted": returns(errExists, subReconcilerCase{}),
		// The owner of the conflicting object cannot be read, so both errors are returned.
		"unable to read": returns(errExists, subReconcilerCase{
			WithClientBuilder: unreadable,
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				wantErr(t, errExists, err)
				wantErr(t, errTest, err)
			},
		}),
		// The conflicting object has the namespace of the child.
		"name is taken in another namespace": reflects(errExists, subReconcilerCase{
			APIGivenObjects: objects{newConfigMap("child"), newConfigMap("child", orphan, other)},
			ExpectCreates:   objects{rtesting.With(wanted("child"), other)},
			Metadata: changes(withoutOwner, func(r *childReconciler) {
				r.DesiredChild = desire(rtesting.With(wanted("child"), other), nil)
				r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.OwnerReferences != nil }
			}),
		}),
	}
	inAll(cases, func(_ string, tc *subReconcilerCase) {
		tc.Resource = newResource()
		if tc.ExpectCreates == nil {
			tc.ExpectCreates = objects{rtesting.With(wanted("child"), claimed)}
		}
	}).Run(t, scheme, childFactory)
}

// Can a condition say that the webhook of a child is down? After as many attempts as the author wants, and again after
// each success.
func TestChildReconciler_ReflectsAnyErrorAfterAttempts(t *testing.T) {
	for name, tc := range map[string]struct {
		after int
		err   error
		// want has an entry for each reconcile: "error", or what is reflected. The child cannot be created in the first
		// three.
		want []string
	}{
		"never":     {0, errWebhook, []string{"error", "error", "error", `"child"`}},
		"at once":   {1, errWebhook, []string{"nothing", "nothing", "nothing", `"child"`}},
		"the third": {3, errWebhook, []string{"error", "error", "nothing", `"child"`}},
		"network":   {2, errTest, []string{"error", "nothing", "nothing", `"child"`}},
		"conflict":  {1, errConflict, []string{"error", "error", "error", `"child"`}},
		"quiet":     {1, reconcilers.ErrHaltSubReconcilers, []string{"", "", "", `"child"`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource())
			child := newChild(showReflected)
			child.ReflectChildErrorsAfter = tc.after
			root := &resourceReconciler{Config: w.Config, Reconciler: child}
			w.Fail("create ConfigMap default/child", tc.err)
			got := []string{}
			for i := range tc.want {
				if i == 3 {
					w.Heal()
				}
				result, err := root.ReconcileManaged(t.Context(), testRequest)
				if err != nil {
					got = append(got, "error")
					continue
				}
				what, _, reflected := strings.Cut(stored(w, newResource()).Status.Fields["reflected"], ":")
				got = append(got, what)
				if reflected && result.RequeueAfter <= 0 {
					t.Errorf("a reflected error is not retried: %+v", result)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected outcomes of the reconciles (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChildReconciler_IgnoresTerminatingChildren(t *testing.T) {
	const list = "list ConfigMap in default"
	generate := func(r *childReconciler) {
		r.DesiredChild = desire(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "child-"}, Data: map[string]string{"key": "value"},
		}, nil)
	}
	for name, tc := range map[string]struct {
		given  []client.Object
		change []func(*childReconciler)
		// want is the expected trace of each reconcile.
		want [][]string
	}{
		"one is terminating": {
			given: []client.Object{newConfigMap("child"), newConfigMap("a-leaving", deleting)},
			want:  [][]string{{list, `reflect "child"`}, {list, `reflect "child"`}},
		},
		"one is terminating, drift": {
			given: []client.Object{
				newConfigMap("child", func(cm *corev1.ConfigMap) { cm.Data["key"] = "drift" }), newConfigMap("a-leaving", deleting),
			},
			want: [][]string{
				{list, "update ConfigMap default/child", childUpdated, `reflect "child"`}, {list, `reflect "child"`},
			},
		},
		"two are terminating, fixed name": {
			given: []client.Object{newConfigMap("a-leaving", deleting), newConfigMap("child", deleting)},
			want:  [][]string{{list, `reflect "child"`}, {list, `reflect "child"`}},
		},
		"two are terminating, generated name": {
			given:  []client.Object{newConfigMap("child-a", deleting), newConfigMap("child-b", deleting)},
			change: []func(*childReconciler){generate},
			want: [][]string{
				{
					list, "create ConfigMap default/child-1", `event default/test Normal Created: Created ConfigMap "child-1"`,
					`reflect "child-1"`,
				},
				{list, `reflect "child-1"`},
				{list, `reflect "child-1"`},
			},
		},
		"two are terminating, none is desired": {
			given:  []client.Object{newConfigMap("child-a", deleting), newConfigMap("child-b", deleting)},
			change: []func(*childReconciler){func(r *childReconciler) { r.DesiredChild = desire(nil, nil) }},
			want:   [][]string{{list, "reflect nothing"}, {list, "reflect nothing"}},
		},
		"none is terminating": {
			given: []client.Object{newConfigMap("child-a"), newConfigMap("child-b"), newConfigMap("child-c")},
			want: [][]string{
				{
					list,
					"delete ConfigMap default/child-a", `event default/test Normal Deleted: Deleted ConfigMap "child-a"`,
					"delete ConfigMap default/child-b", `event default/test Normal Deleted: Deleted ConfigMap "child-b"`,
					"delete ConfigMap default/child-c", `event default/test Normal Deleted: Deleted ConfigMap "child-c"`,
					"create ConfigMap default/child", childCreated, `reflect "child"`,
				},
				{list, `reflect "child"`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.given...)
			r := newChildReconciler(w, tc.change...)
			for i, want := range tc.want {
				_, err := r.Reconcile(w.Context(), newResource())
				wantErr(t, nil, err)
				equal(t, fmt.Sprintf("trace of reconcile %d", i+1), want, w.Trace())
			}
		})
	}
}

func TestChildReconciler_WaitsForTheNameOfATerminatingChild(t *testing.T) {
	old := newConfigMap("child", deleting)
	w := newWorld(t, old)
	r := newChildReconciler(w)
	_, err := r.Reconcile(w.Context(), newResource())
	wantErr(t, nil, err)
	equal(t, "writes while the old child is terminating", []string{`reflect "child"`}, w.Writes())

	terminated := stored(w, old)
	terminated.Finalizers = nil
	wantErr(t, nil, w.Server.Update(context.Background(), terminated))
	_, err = r.Reconcile(w.Context(), newResource())
	wantErr(t, nil, err)
	equal(
		t, "later writes", []string{"create ConfigMap default/child", childCreated, `reflect "child"`}, w.Writes(),
	)
}

// stubManager returns the given child and error.
type stubManager struct {
	child *corev1.ConfigMap
	err   error
	setup int
}

func (m *stubManager) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	m.setup++
	return nil
}

func (m *stubManager) Manage(
	context.Context, client.Object, *corev1.ConfigMap, *corev1.ConfigMap,
) (*corev1.ConfigMap, error) {
	return m.child, m.err
}

func TestChildReconciler_ObjectManager(t *testing.T) {
	stub := func(r *childReconciler) { r.ChildObjectManager = &rtesting.StubObjectManager[*corev1.ConfigMap]{} }
	undesired := func(r *childReconciler) { r.DesiredChild = desire(nil, nil) }
	there, drifted := objects{newConfigMap("child")}, objects{newConfigMap("child", drift)}
	reflected := func(what string) *fixture.Resource { return newResource(reflecting(what)) }
	subReconcilerTests{
		"missing": {
			Resource: newResource(), Metadata: changes(stub),
			ExpectCreates: objects{rtesting.With(wanted("child"), claimed)}, ExpectResource: reflected(`"child"`),
		},
		"existing": {
			Resource: newResource(), Metadata: changes(stub), GivenObjects: drifted, ExpectUpdates: there,
			ExpectResource: reflected(`"child"`),
		},
		"undesired": {
			Resource: newResource(), Metadata: changes(stub, undesired), GivenObjects: there,
			ExpectDeletes: deletes("child"), ExpectResource: reflected("nothing"),
		},
		"nothing": {Resource: newResource(), Metadata: changes(stub, undesired), ExpectResource: reflected("nothing")},
		"a child and an error": {
			Resource: newResource(), ExpectResource: reflected(`"made": ` + errInvalid.Error()),
			Metadata: changes(func(r *childReconciler) {
				r.ChildObjectManager = &stubManager{child: wanted("made"), err: errInvalid}
			}),
		},
	}.Run(t, scheme, childFactory)
}

// What does a set in a controller report if a member fails, or if its members are unknown? Each member is tried, and
// the reflect function sees each of them with its error.
func TestChildSetReconciler_EachMemberIsTriedAndReflected(t *testing.T) {
	for name, tc := range map[string]struct {
		edit  func(*childSetReconciler)
		given objects
		fail  string
		// want is what is reflected. creates are the children that exist afterwards.
		want, exist string
	}{
		"one fails": {
			fail: "create ConfigMap default/child-b", exist: "child-a child-c",
			want: "[a=child-a b=! c=child-c] aggregate error failure of the test",
		},
		"the first fails, and exists": {
			given: objects{newConfigMap("child-a", identified("a"), drift)}, fail: "update ConfigMap default/child-a",
			want: "[a=child-a! b=child-b c=child-c] aggregate error failure of the test", exist: "child-a child-b child-c",
		},
		"DesiredChildren fails": {
			edit:  func(r *childSetReconciler) { r.DesiredChildren = desireAll(errTest) },
			given: objects{newConfigMap("child-a", identified("a"))},
			want:  "[a=child-a!] aggregate error [failure of the test, the child was not reconciled]", exist: "child-a",
		},
		"DesiredChildren fails, and there are none": {
			edit: func(r *childSetReconciler) { r.DesiredChildren = desireAll(errTest) },
			want: "[] aggregate error failure of the test",
		},
		"ids repeat": {
			edit: func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, member("a"), member("a")) },
			want: "[] aggregate error duplicate child id found: a",
		},
		"a deletion fails": {
			edit:  func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, member("c")) },
			given: objects{newConfigMap("child-b", identified("b"))}, fail: "delete ConfigMap default/child-b",
			want: "[b=child-b! c=child-c] aggregate error failure of the test", exist: "child-b child-c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(objects{newResource()}, tc.given...)...)
			if tc.fail != "" {
				w.Fail(tc.fail, errTest)
			}
			set := newChildSet(showReflected)
			set.DesiredChildren = desireAll(nil, member("a"), member("b"), member("c"))
			if tc.edit != nil {
				tc.edit(set)
			}
			root := &resourceReconciler{Config: w.Config, Reconciler: set}
			if _, err := root.ReconcileManaged(t.Context(), testRequest); err == nil {
				t.Error("expected the error of the child, got none")
			} else if tc.fail != "" && !errors.Is(err, errTest) {
				t.Errorf("unexpected error %v", err)
			}
			r := &fixture.Resource{}
			if err := w.Server.Get(t.Context(), testRequest.NamespacedName, r); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, r.Status.Fields["reflected"]); diff != "" {
				t.Errorf("unexpected reflection (-want +got):\n%s", diff)
			}
			list, names := &corev1.ConfigMapList{}, []string{}
			if err := w.Server.List(t.Context(), list, client.InNamespace("default")); err != nil {
				t.Fatal(err)
			}
			for _, child := range list.Items {
				names = append(names, child.Name)
			}
			slices.Sort(names)
			if diff := cmp.Diff(tc.exist, strings.Join(names, " ")); diff != "" {
				t.Errorf("unexpected children (-want +got):\n%s", diff)
			}
		})
	}
}

// reflectionWorld returns a resource whose child cannot be created at first.
func reflectionWorld(t *testing.T, cause error, edits ...func(*childReconciler)) (*world, *resourceReconciler) {
	w := newWorld(t, newResource())
	w.Fail("create ConfigMap", cause)
	return w, &resourceReconciler{Name: t.Name(), Config: w.Config, Reconciler: newChildReconciler(w, edits...)}
}

// A child that the API server rejects is retried with growing delays until it is accepted.
func TestReflectedErrors_AreRetriedSlowly(t *testing.T) {
	ctx := calledby.Controller()
	for name, cause := range map[string]error{"Forbidden": errForbidden, "Invalid": errInvalid} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, r := reflectionWorld(t, cause)
				counted := apitest.Counting(t, "trueup_reflected_errors_total", map[string]string{
					"controller": t.Name(), "reason": name,
				})
				reconcile := func() time.Duration {
					t.Helper()
					result, err := r.Reconcile(ctx, testRequest)
					wantErr(t, nil, err)
					return result.RequeueAfter
				}
				delays := []time.Duration{}
				for range 7 {
					delays = append(delays, reconcile())
					time.Sleep(delays[len(delays)-1])
				}
				equal(t, "delays", []time.Duration{
					10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute,
					5 * time.Minute,
				}, delays)
				equal(t, "retry", 5*time.Minute, reconcile())

				// A reconcile between retries neither postpones the retry nor increases the delay.
				time.Sleep(time.Minute)
				equal(t, "an event meanwhile", 4*time.Minute, reconcile())
				equal(t, "reflected errors", 9, counted())

				w.Heal()
				equal(t, "success", 0, reconcile())
				equal(t, "creates", 10, w.Count("create ConfigMap"))
				w.Fail("create ConfigMap", cause)
				wantErr(t, nil, w.Server.Delete(context.Background(), newConfigMap("child")))
				equal(t, "the next failure", 10*time.Second, reconcile())
			})
		})
	}
}

// An object that has the name of the child is watched, so a watch event announces its deletion.
func TestReflectedErrors_AreNotPolledIfTheObjectIsWatched(t *testing.T) {
	ctx := calledby.Controller()
	blocker := newConfigMap("child", orphan)
	for name, tc := range map[string]struct {
		edits []func(*childReconciler)
		want  time.Duration
	}{
		"tracked": {nil, 0},
		"not tracked": {
			[]func(*childReconciler){withoutOwner, func(r *childReconciler) { r.OurChild = notBlocking }}, 10 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(), blocker)
			r := &resourceReconciler{Config: w.Config, Reconciler: newChildReconciler(w, tc.edits...)}
			result, err := r.Reconcile(ctx, testRequest)
			wantErr(t, nil, err)
			equal(t, "RequeueAfter", tc.want, result.RequeueAfter.Round(time.Second))
			equal(t, "creates", 1, w.Count("create ConfigMap"))
		})
	}
}

// notBlocking is an OurChild function that returns false for every stored object.
func notBlocking(_ *fixture.Resource, child *corev1.ConfigMap) bool {
	return child.CreationTimestamp.IsZero()
}

// A test that calls a reconciler directly receives the result of the reconcilers.
func TestReflectedErrors_DoNotChangeTheResultOfADirectCall(t *testing.T) {
	_, r := reflectionWorld(t, errForbidden)
	result, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	equal(t, "result", reconcilers.Result{}, result)
}

// A later step that waits longer does not postpone the retry.
func TestReflectedErrors_AreRetriedBeforeALaterHalt(t *testing.T) {
	ctx := calledby.Controller()
	for name, tc := range map[string]struct {
		halt  error
		after time.Duration
	}{
		"halt":                 {reconcilers.ErrHaltSubReconcilers, time.Hour},
		"retry after":          {reconcilers.ErrRetryAfter, time.Hour},
		"retry after an event": {reconcilers.ErrRetryAfter, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := reflectionWorld(t, errForbidden)
			r.Reconciler = sequence{r.Reconciler, returning(reconcilers.Result{RequeueAfter: tc.after}, tc.halt)}
			for _, when := range []string{"status is written", "status is unchanged"} {
				result, err := r.Reconcile(ctx, testRequest)
				wantErr(t, nil, err)
				equal(t, "RequeueAfter, "+when, 10*time.Second, result.RequeueAfter.Round(time.Second))
			}
		})
	}
}
