// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
		// The conflicting object is read from the API server and tracked, so that its deletion triggers the parent.
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
