// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

type (
	subCase    = rtesting.SubReconcilerTestCase[*fixture.Resource]
	subFactory = rtesting.SubReconcilerFactory[*fixture.Resource]
)

// syncing is the factory for a subreconciler that does what the function does.
func syncing[T client.Object](sync func(ctx context.Context, resource T) error) rtesting.SubReconcilerFactory[T] {
	return func(*testing.T, *rtesting.SubReconcilerTestCase[T], reconcilers.Config) reconcilers.SubReconciler[T] {
		return &reconcilers.SyncReconciler[T]{Sync: sync}
	}
}

func TestSubReconcilerTestCase(t *testing.T) {
	s := &story{t: t}
	tc := &subCase{
		Resource: newResource("resource"),
		Now:      noon,
		Prepare: func(_ *testing.T, ctx context.Context, tc *subCase) (context.Context, error) {
			s.tell(ctx, "prepare", tc.Metadata)
			tc.Metadata = map[string]any{"by": "prepare"}
			tc.GivenObjects = []client.Object{configMap("given")}
			tc.ExpectCreates = []client.Object{configMap("made")}
			tc.CleanUp = func(_ *testing.T, ctx context.Context, tc *subCase) error {
				s.tell(ctx, "clean up", tc.Metadata)
				return nil
			}
			return prepared(ctx), nil
		},
	}
	tc.Run(t, scheme, func(_ *testing.T, tc *subCase, c reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(ctx context.Context, _ *fixture.Resource) error {
			s.tell(ctx, "reconcile", tc.Metadata)
			return work(ctx, c)
		}}
	})
	want := []string{
		"prepare: prepared=false stash=true recursive=false metadata=map[]",
		"reconcile: prepared=true stash=true recursive=true metadata=map[by:prepare]",
		"clean up: prepared=true stash=true recursive=true metadata=map[by:prepare]",
	}
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// The context is the one a root reconciler makes.
func TestSubReconcilerTestCaseContext(t *testing.T) {
	given := newResource("resource")
	tc := &subCase{
		Resource:          given,
		AdditionalConfigs: map[string]rtesting.ExpectConfig{"remote": {}},
	}
	var config reconcilers.Config
	tc.Run(t, scheme, func(_ *testing.T, _ *subCase, c reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
		config = c
		return &reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(ctx context.Context, r *fixture.Resource) error {
			if r == given {
				t.Error("the reconciler gets the object of the table, want a copy")
			}
			if reconcilers.RetrieveConfigOrDie(ctx) != config || reconcilers.RetrieveOriginalConfigOrDie(ctx) != config {
				t.Error("config and original config on the context are not the config of the factory")
			}
			request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "resource"}}
			if diff := cmp.Diff(request, reconcilers.RetrieveRequest(ctx)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			for name, resourceType := range map[string]client.Object{
				"resource type":          reconcilers.RetrieveResourceType(ctx),
				"original resource type": reconcilers.RetrieveOriginalResourceType(ctx),
			} {
				if _, ok := resourceType.(*fixture.Resource); !ok || resourceType == client.Object(r) {
					t.Errorf("%s is %T, want an *fixture.Resource that is not the resource itself", name, resourceType)
				}
			}
			if _, ok := reconcilers.RetrieveAdditionalConfigs(ctx)["remote"]; !ok {
				t.Error("the additional config is not on the context")
			}
			return nil
		}}
	})
}

// The resource is there for both clients, and can be patched with its version as a lock.
func TestSubReconcilerTestCaseResourceVersion(t *testing.T) {
	tests := map[string]struct {
		given, expected string
		patch           string
	}{
		"Default": {
			expected: "1000",
			patch:    `{"metadata":{"finalizers":["example.com/f"],"resourceVersion":"999"}}`,
		},
		"Given": {
			given:    "41",
			expected: "42",
			patch:    `{"metadata":{"finalizers":["example.com/f"],"resourceVersion":"41"}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			given := rtesting.With(newResource("resource"), func(r *fixture.Resource) { r.ResourceVersion = tt.given })
			tc := &subCase{
				Resource: given,
				ExpectResource: rtesting.With(given, func(r *fixture.Resource) {
					r.Finalizers = []string{"example.com/f"}
					r.ResourceVersion = tt.expected
				}),
				ExpectEvents: []rtesting.Event{
					rtesting.NewEvent(given, scheme, corev1.EventTypeNormal, "FinalizerPatched", `Patched finalizer "example.com/f"`),
				},
				ExpectPatches: []rtesting.PatchRef{{
					Group: "fixture.trueup.dev", Kind: "Resource", Namespace: "default", Name: "resource",
					PatchType: types.MergePatchType, Patch: []byte(tt.patch),
				}},
			}
			tc.Run(t, scheme, syncing(func(ctx context.Context, r *fixture.Resource) error {
				if !r.CreationTimestamp.IsZero() {
					t.Errorf("creation timestamp is %s, want none: the table has none", r.CreationTimestamp)
				}
				c := reconcilers.RetrieveConfigOrDie(ctx)
				for name, reader := range map[string]client.Reader{"Client": c, "APIReader": c.APIReader} {
					stored := &fixture.Resource{}
					if err := reader.Get(ctx, client.ObjectKeyFromObject(r), stored); err != nil {
						t.Errorf("%s: %s", name, err)
					}
					if stored.CreationTimestamp.IsZero() {
						t.Errorf("%s: the stored resource has no creation timestamp", name)
					}
				}
				return reconcilers.AddFinalizer(ctx, r, "example.com/f")
			}))
			if given.ResourceVersion != tt.given {
				t.Errorf("the object of the table has got the resource version %q", given.ResourceVersion)
			}
		})
	}
}

// changed is the label that the subreconcilers below set.
const changed = "changed"

func label[T client.Object](_ context.Context, resource T) error {
	resource.SetLabels(map[string]string{changed: "true"})
	return nil
}

func TestSubReconcilerTestCaseTypes(t *testing.T) {
	t.Run("Interface", func(t *testing.T) {
		tc := &rtesting.SubReconcilerTestCase[client.Object]{
			Resource: configMap("resource"),
			ExpectResource: rtesting.With(configMap("resource"), func(c *corev1.ConfigMap) {
				c.Labels = map[string]string{changed: "true"}
			}),
		}
		tc.Run(t, scheme, syncing(label[client.Object]))
	})
	t.Run("Duck", func(t *testing.T) {
		duck := fixture.NewDuck("default", "resource")
		tc := &rtesting.SubReconcilerTestCase[*fixture.Duck]{
			Resource:       duck,
			ExpectResource: rtesting.With(duck, func(d *fixture.Duck) { d.Labels = map[string]string{changed: "true"} }),
		}
		tc.Run(t, scheme, syncing(func(ctx context.Context, d *fixture.Duck) error {
			stored := &fixture.Resource{}
			if err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, client.ObjectKeyFromObject(d), stored); err != nil {
				return err
			}
			return label(ctx, d)
		}))
	})
	t.Run("Unstructured", func(t *testing.T) {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "resource"},
		}}
		expected := u.DeepCopy()
		expected.SetLabels(map[string]string{changed: "true"})
		tc := &rtesting.SubReconcilerTestCase[*unstructured.Unstructured]{Resource: u, ExpectResource: expected}
		tc.Run(t, scheme, syncing(label[*unstructured.Unstructured]))
	})
	t.Run("Die", func(t *testing.T) {
		tc := &rtesting.SubReconcilerTestCase[client.Object]{Resource: die{configMap("resource")}}
		tc.Run(t, scheme, syncing(func(_ context.Context, resource client.Object) error {
			if _, ok := resource.(*corev1.ConfigMap); !ok {
				t.Errorf("resource is a %T, want what is in the die", resource)
			}
			return nil
		}))
	})
}

// die is an object that wraps another one, and unwraps it as its deep copy.
type die struct{ *corev1.ConfigMap }

func (d die) DeepCopyObject() runtime.Object { return d.ConfigMap.DeepCopyObject() }

var _ = metav1.Object(die{})

// Nothing to do is a reconciler too.
func TestSubReconcilerTestCaseEmptySequence(t *testing.T) {
	tc := &subCase{Resource: newResource("resource")}
	tc.Run(t, scheme, func(*testing.T, *subCase, reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
		return reconcilers.Sequence[*fixture.Resource](nil)
	})
}

func TestSubReconcilerTestCaseShouldPanic(t *testing.T) {
	t.Run("Panics", func(t *testing.T) {
		tc := &subCase{Resource: newResource("resource"), ShouldPanic: true}
		tc.Run(t, scheme, syncing(func(context.Context, *fixture.Resource) error { panic("on purpose") }))
	})
	t.Run("EndsTheTest", func(t *testing.T) {
		cleaned := false
		t.Run("", func(t *testing.T) {
			tc := &subCase{
				Resource: newResource("resource"), ShouldPanic: true,
				CleanUp: func(*testing.T, context.Context, *subCase) error {
					cleaned = true
					return nil
				},
			}
			tc.Run(t, scheme, syncing(func(context.Context, *fixture.Resource) error {
				t.SkipNow()
				return nil
			}))
		})
		if !cleaned {
			t.Error("CleanUp is not called when the test ends in the reconciler")
		}
	})
}

// The reconciler is the same for all calls, everything else is new.
func TestSubReconcilerTestCaseAdditionalReconciles(t *testing.T) {
	made, calls := 0, 0
	var configs []reconcilers.Config
	tc := &subCase{
		Resource:      newResource("resource"),
		ExpectCreates: []client.Object{configMap("made")},
		AdditionalReconciles: []subCase{
			{Name: "again", Resource: newResource("resource"), ExpectCreates: []client.Object{configMap("made")}},
			{Name: "skipped", Skip: true, Resource: newResource("resource")},
			{Name: "at last", Resource: newResource("resource"), ShouldErr: true},
		},
	}
	factory := func(*testing.T, *subCase, reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
		made++
		return &reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(ctx context.Context, _ *fixture.Resource) error {
			c := reconcilers.RetrieveConfigOrDie(ctx)
			configs = append(configs, c)
			if calls++; calls == 3 {
				return context.Canceled
			}
			return c.Create(ctx, configMap("made"))
		}}
	}
	tc.Run(t, scheme, factory)
	if made != 1 || calls != 3 {
		t.Errorf("the factory was called %d times and the reconciler %d times, want 1 and 3", made, calls)
	}
	if len(configs) == 3 && (configs[0] == configs[1] || configs[1] == configs[2]) {
		t.Error("calls share a config")
	}
}

func TestSubReconcilerTestCaseAdditionalReconcilesFocus(t *testing.T) {
	defer func() {
		if diff := cmp.Diff("Focus is not allowed for AdditionalReconciles", recover()); diff != "" {
			t.Errorf("panic (-want +got):\n%s", diff)
		}
	}()
	tc := &subCase{Resource: newResource("resource"), AdditionalReconciles: []subCase{{Focus: true}}}
	tc.Run(t, scheme, subFactory(nil))
}

func TestSubReconcilerTestCaseStash(t *testing.T) {
	given := configMap("given")
	tc := &subCase{
		Resource: newResource("resource"),
		GivenStashedValues: map[stash.Key]interface{}{
			"object":    given,
			"die":       die{configMap("die")},
			"nil":       nil,
			"typed nil": (*corev1.ConfigMap)(nil),
			"text":      "as it is",
		},
		ExpectStashedValues: map[stash.Key]interface{}{
			"object":     configMap("changed"),
			"die":        die{configMap("die")},
			"text":       "as it is",
			"nil":        (*corev1.ConfigMap)(nil),
			"typed nil":  nil,
			"missing":    nil,
			"added list": []string{"a", "b"},
		},
	}
	tc.Run(t, scheme, syncing(func(ctx context.Context, _ *fixture.Resource) error {
		if _, ok := stash.RetrieveValue(ctx, "die").(*corev1.ConfigMap); !ok {
			t.Error("what is stashed is not what is in the die")
		}
		for _, key := range []stash.Key{"nil", "typed nil"} {
			if !stash.HasValue(ctx, key) {
				t.Errorf("%s is not in the stash", key)
			}
		}
		stash.RetrieveValue(ctx, "object").(*corev1.ConfigMap).Name = "changed"
		stash.StoreValue(ctx, "added list", []string{"a", "b"})
		stash.StoreValue(ctx, "not mentioned", 1)
		return nil
	}))
	if given.Name != "given" {
		t.Error("the reconciler has changed the object of the table")
	}
}

func TestSubReconcilerTestCaseVerifyStashedValue(t *testing.T) {
	type call struct {
		Key              stash.Key
		Expected, Actual any
	}
	var calls []call
	tc := &subCase{
		Resource:            newResource("resource"),
		ExpectStashedValues: map[stash.Key]interface{}{"b": 1, "a": 2, "missing": nil},
		VerifyStashedValue: func(_ *testing.T, key stash.Key, expected, actual interface{}) {
			calls = append(calls, call{key, expected, actual})
		},
	}
	tc.Run(t, scheme, syncing(func(ctx context.Context, _ *fixture.Resource) error {
		stash.StoreValue(ctx, "a", "other")
		stash.StoreValue(ctx, "b", 1)
		return nil
	}))
	want := []call{{"a", 2, "other"}, {"b", 1, 1}, {"missing", nil, nil}}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
