// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"trueup.dev/internal/guard"
	"trueup.dev/resource"
)

var (
	testConfigMaps = resource.Kind{
		Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{}),
	}
	testNodes = resource.Kind{
		Schema: resource.NewSimpleSchema(
			"", "v1", &corev1.Node{}, &corev1.NodeList{}, resource.WithScope(resource.ClusterScope),
		),
	}
)

func TestInformerOptions_Problems(t *testing.T) {
	for name, tc := range map[string]struct {
		kind    resource.Kind
		options InformerOptions
		want    []string
	}{
		"none": {kind: testConfigMaps},
		"all fine": {
			kind: testConfigMaps,
			options: InformerOptions{
				Namespaces: []string{"a"}, LabelFilters: []string{"a", "b in (c)"}, FieldSelectors: []string{"d=e"},
			},
		},
		"no kind": {want: []string{"Schema"}},
		"nodes": {
			kind: testNodes, options: InformerOptions{Namespaces: []string{"a"}},
			want: []string{"informer of Node.v1: the kind is cluster-scoped"},
		},
		"everything": {
			kind: testConfigMaps,
			options: InformerOptions{
				Namespaces: []string{"a", "", "a", "B"}, LabelFilters: []string{"a", "a b", " "}, FieldSelectors: []string{
					"c", "", "=x", "d=e",
				}, CacheResyncInterval: -1,
			},
			want: []string{
				"informer of ConfigMap.v1: Namespaces[1]: must not be empty", `Namespaces[2]: "a" is a duplicate of Namespaces[0]`,
				`Namespaces[3]: "B" is not the name of a namespace`,
				`LabelFilters[1]: "a b" is not a label selector`, "LabelFilters[2]: must not be empty",
				`FieldSelectors[0]: "c" is not a field selector`, "FieldSelectors[1]: must not be empty",
				`FieldSelectors[2]: "=x" does not name a field`,
				"CacheResyncInterval: must not be negative, got -1ns",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.options.selection(tc.kind)
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestInformerOptions_Selection(t *testing.T) {
	s, err := InformerOptions{
		MetadataOnly: true, LabelFilters: []string{"a=b", "c"}, FieldSelectors: []string{"d=e", "f!=g"},
	}.selection(testConfigMaps)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.object.(*metav1.PartialObjectMetadata); !ok ||
		s.object.GetObjectKind().GroupVersionKind().Kind != "ConfigMap" {
		t.Errorf("the object is %v", s.object)
	}
	got := []string{s.labels.String(), s.fields.String(), s.resync.String()}
	if diff := cmp.Diff([]string{"a=b,c", "d=e,f!=g", "10h0m0s"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRoute(t *testing.T) {
	typed := guard.NewForm(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{})
	partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	metadata := guard.NewForm(corev1.SchemeGroupVersion.WithKind("ConfigMap"), partial)
	for name, tc := range map[string]struct {
		form    guard.Form
		is, not []client.Object
	}{
		"Go type": {form: typed, is: []client.Object{&corev1.ConfigMap{}}, not: []client.Object{partial, &corev1.Secret{}}},
		"metadata": {
			form: metadata, is: []client.Object{partial},
			not: []client.Object{&corev1.ConfigMap{}, &metav1.PartialObjectMetadata{}},
		},
	} {
		r := route{form: tc.form, scheme: scheme.Scheme}
		for _, obj := range tc.is {
			if !r.is(obj) {
				t.Errorf("%s: %T belongs to another informer", name, obj)
			}
		}
		for _, obj := range tc.not {
			if r.is(obj) {
				t.Errorf("%s: %T belongs to this informer", name, obj)
			}
		}
		if got, want := r.isKind(corev1.SchemeGroupVersion.WithKind("ConfigMap")), name == "Go type"; got != want {
			t.Errorf("%s: the kind belongs to this informer: %t", name, got)
		}
	}
	if r := (route{form: typed, scheme: scheme.Scheme}); !r.is(&corev1.ConfigMapList{}) || r.is(&corev1.SecretList{}) {
		t.Error("lists of different kinds are not distinguished")
	}
}

func TestCustomCacheInformerSupplier_Errors(t *testing.T) {
	failure := errors.New("no store")
	supply := CustomCacheInformerSupplier(func(resource.Kind) (Store, error) { return nil, failure })
	if _, err := supply(testConfigMaps, nil, InformerOptions{}); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if _, err := NewCustomCacheInformer(testConfigMaps, nil, nil, InformerOptions{}); err == nil {
		t.Error("an informer without a store: no error")
	}
	for name, supplier := range map[string]InformerSupplier{
		"default": DefaultInformerSupplier, "metadata": MetadataOnlyInformerSupplier,
	} {
		if _, err := supplier(testConfigMaps, nil, InformerOptions{CacheResyncInterval: -time.Second}); err == nil {
			t.Errorf("%s: invalid options: no error", name)
		}
	}
}

// A handler with a reduced PreviousState does not keep the objects of events.
func TestWithEdge_KeepsPartsOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		previous PreviousState
		data     bool
		labels   bool
	}{
		"full":     {previous: PreviousFull, data: true, labels: true},
		"metadata": {previous: PreviousMetadata, labels: true},
		"none":     {previous: PreviousNone},
	} {
		t.Run(name, func(t *testing.T) {
			edge := WatcherReconciler[*corev1.ConfigMap](nil)
			edge.PreviousState = tc.previous
			edge.init()
			notes := edge.notes(&corev1.ConfigMap{})
			cm := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "1", Labels: map[string]string{"a": "b"}},
				Data:       map[string]string{"a": "b"},
			}
			check := func() {
				t.Helper()
				latest := edge.ledger.records[client.ObjectKeyFromObject(cm)].latest.(*corev1.ConfigMap)
				if latest.Name != "a" || latest.ResourceVersion != cm.ResourceVersion || (latest.Data != nil) != tc.data ||
					(latest.Labels != nil) != tc.labels {
					t.Errorf("kept %v", latest)
				}
			}
			notes.Create(event.CreateEvent{Object: cm})
			check()
			before := cm
			cm = cm.DeepCopy()
			cm.ResourceVersion = "2"
			notes.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: cm})
			check()
		})
	}
}

func TestInformerController_Adds(t *testing.T) {
	informer := NewInformer(nil, &corev1.ConfigMap{})
	watcher, other := &nothing{}, &nothing{name: "other"}
	reconciler := &TypedReconciler[*corev1.ConfigMap]{}
	for name, tc := range map[string]struct {
		do   func(c *InformerController) error
		want string // an error of validation, if any
		n    int    // handlers
	}{
		"nothing": {do: func(*InformerController) error { return nil }},
		"no handler": {
			do:   func(c *InformerController) error { return c.AddInformer(informer, "k") },
			want: `kind "k" must have a watcher or a reconciler`,
		},
		"no informer": {
			do: func(c *InformerController) error { return c.AddWatcher(watcher, "k") }, want: `kind "k" must have an informer`,
			n: 1,
		},
		"shared informer": {
			do: then(full(informer, watcher, other, reconciler), func(c *InformerController) error {
				return errors.Join(c.AddInformer(informer, "l"), c.AddWatcher(watcher, "l"))
			}), want: `kind "l" must have its own informer`, n: 3,
		},
		"all": {do: full(informer, watcher, other, reconciler), n: 3},
		"without one": {
			do: then(full(informer, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveWatcher(other, "k")
			}),
			n: 2,
		},
		"without first": {
			do: then(full(informer, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveReconciler(reconciler, "k")
			}),
			n: 2,
		},
		"other kind": {
			do: then(full(informer, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveWatcher(other, "l")
			}),
			n: 3,
		},
		"no watchers": {
			do: then(full(informer, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveAllWatchersForResource("k")
			}),
			n: 1,
		},
		"no reconcilers": {
			do: then(full(informer, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveAllReconcilersForResource("k")
			}),
			n: 2,
		},
		"informer is off": {
			do: then(full(informer, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveInformer(informer, "k")
			}),
			want: "must have an informer", n: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewInformerController(DefaultInformerControllerConfig())
			if err := tc.do(c); err != nil {
				t.Fatal(err)
			}
			err := c.validate()
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if k := c.kinds["k"]; k != nil && len(k.handlers) != tc.n {
				t.Errorf("%d handlers, want %d", len(k.handlers), tc.n)
			}
		})
	}
}

func full(informer Informer, watcher, other ResourceWatcher, reconciler Reconciler) func(c *InformerController) error {
	return func(c *InformerController) error {
		return errors.Join(
			c.AddInformer(informer, "k"), c.AddWatcher(watcher, "k"), c.AddReconciler(reconciler, "k"), c.AddWatcher(other, "k"),
		)
	}
}

func then(first, second func(c *InformerController) error) func(c *InformerController) error {
	return func(c *InformerController) error { return errors.Join(first(c), second(c)) }
}

// nothing is a watcher without effect.
type nothing struct{ name string }

func (*nothing) Add(context.Context, resource.Object) error                     { return nil }
func (*nothing) Update(context.Context, resource.Object, resource.Object) error { return nil }
func (*nothing) Delete(context.Context, resource.Object) error                  { return nil }

func TestInformerController_Refuses(t *testing.T) {
	c := NewInformerController(InformerControllerConfig{})
	for name, err := range map[string]error{
		"nil informer": c.AddInformer(nil, "k"), "nil watcher": c.AddWatcher(nil, "k"),
		"nil reconciler": c.AddReconciler(nil, "k"),
		"empty kind":     c.AddWatcher(&nothing{}, ""), "no cluster": c.Run(t.Context()),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := c.SetupWithManager(t.Context(), nil); err != nil {
		t.Errorf("nothing to set up: %v", err)
	}
	informer := NewInformer(nil, &corev1.ConfigMap{})
	for name, err := range map[string]error{
		"late, without a handler": c.AddInformer(informer, "k"), "second": c.SetupWithManager(t.Context(), nil),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := WithInformer(nil, "k", nil); err == nil {
		t.Error("a nil informer: no error")
	}
}
