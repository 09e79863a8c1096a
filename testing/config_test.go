// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/tracker"
)

func names(objs []corev1.ConfigMap) []string {
	var names []string
	for _, obj := range objs {
		names = append(names, obj.Name)
	}
	return names
}

func mustList(t *testing.T, c client.Reader, opts ...client.ListOption) []string {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list, opts...); err != nil {
		t.Fatal(err)
	}
	return names(list.Items)
}

func TestConfig(t *testing.T) {
	c := &ExpectConfig{Scheme: assertScheme}
	config := c.Config()
	if config != c.Config() {
		t.Error("it is not the same each time")
	}
	if _, ok := config.Client.(TestClient); !ok {
		t.Errorf("a %T is not a TestClient", config.Client)
	}
	if other := (&ExpectConfig{Scheme: assertScheme}).Config(); config == other {
		t.Error("two configs are the same")
	}
	c.AssertExpectations(t)
	if len(c.observedErrors) != 0 {
		t.Errorf("got failures %q for a config that nothing was done with", c.observedErrors)
	}
}

// A config that was only asserted has been made nevertheless.
func TestAssertBeforeConfig(t *testing.T) {
	c := ExpectConfig{
		Scheme: assertScheme, ExpectDeletes: []DeleteRef{{Kind: "ConfigMap", Namespace: "web", Name: "theme"}},
	}
	c.AssertExpectations(nil)
	if diff := cmp.Diff([]string{"ExpectDeletes[0] not observed: ConfigMap web/theme"}, c.observedErrors); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

func TestConfigCopies(t *testing.T) {
	original := ExpectConfig{Scheme: assertScheme, GivenObjects: []client.Object{theMap()}}
	copied := original
	if err := original.Config().Delete(t.Context(), theMap()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"theme"}, mustList(t, copied.Config())); diff != "" {
		t.Errorf("the copy is not a config of its own (-want +got):\n%s", diff)
	}
	copied.AssertExpectations(t)
}

func TestGivenObjects(t *testing.T) {
	given := theMap(blue)
	created := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local))
	older := theMap(renamed("older"), func(cm *corev1.ConfigMap) { cm.CreationTimestamp = created })
	c := ExpectConfig{
		Scheme:                 assertScheme,
		StatusSubResourceTypes: []client.Object{die{fixture.NewDuck("", "")}},
		GivenObjects:           []client.Object{given, older, die{theMap(renamed("died"))}, fixture.NewDuck("web", "duck")},
		APIGivenObjects:        []client.Object{theMap(renamed("live")), die{fixture.NewDuck("web", "live")}},
	}
	config := c.Config()

	if diff := cmp.Diff(
		[]string{"died", "older", "theme"}, slices.Sorted(slices.Values(mustList(t, config))),
	); diff != "" {
		t.Errorf("objects for Client (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"live"}, mustList(t, config.APIReader)); diff != "" {
		t.Errorf("objects for APIReader (-want +got):\n%s", diff)
	}

	stored := &corev1.ConfigMap{}
	if err := config.Get(t.Context(), client.ObjectKeyFromObject(given), stored); err != nil {
		t.Fatal(err)
	}
	want := theMap(blue, func(cm *corev1.ConfigMap) {
		cm.CreationTimestamp, cm.ResourceVersion = metav1.NewTime(time.UnixMilli(1000)), "999"
	})
	if diff := cmp.Diff(want, stored, IgnoreTypeMeta); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(theMap(blue), given); diff != "" {
		t.Errorf("what was given has changed (-want +got):\n%s", diff)
	}
	if err := config.Get(t.Context(), client.ObjectKeyFromObject(older), stored); err != nil ||
		!stored.CreationTimestamp.Equal(&created) {
		t.Errorf("created at %s, want %s: %v", stored.CreationTimestamp, created, err)
	}

	// Ducks and what they stand for are the same objects, in each of the clients.
	for name, reader := range map[string]client.Reader{"duck": config, "live": config.APIReader} {
		key := types.NamespacedName{Namespace: "web", Name: name}
		if err := reader.Get(t.Context(), key, fixture.NewDuck("", "")); err != nil {
			t.Errorf("duck: %s", err)
		}
		if err := reader.Get(t.Context(), key, &fixture.Resource{}); err != nil {
			t.Errorf("what the duck stands for: %s", err)
		}
	}
	patched := fixture.NewDuck("web", "duck")
	if err := config.Status().Patch(
		t.Context(), patched, client.RawPatch(types.MergePatchType, []byte(`{"status":{"fields":{"a":"b"}}}`)),
	); err != nil {
		t.Errorf("the status of ducks is not one: %s", err)
	}
}

func TestGivenTracks(t *testing.T) {
	c := ExpectConfig{Scheme: assertScheme, GivenTracks: []TrackRequest{
		NewTrackRequest(theMap(), theResource(), assertScheme),
		{
			Tracker: types.NamespacedName{Namespace: "web", Name: "shop"},
			Tracked: tracker.NewKey(corev1.SchemeGroupVersion.WithKind("ConfigMap"), types.NamespacedName{Namespace: "web", Name: "theme"}), //nolint:staticcheck // still accepted
		},
	}}
	got, err := c.Config().Tracker.GetObservers(theMap())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(
		[]types.NamespacedName{{Namespace: "web", Name: "blog"}, {Namespace: "web", Name: "shop"}}, got,
	); diff != "" {
		t.Errorf("observers (-want +got):\n%s", diff)
	}
	c.AssertExpectations(t)
}

func TestWithReactors(t *testing.T) {
	var asked []string
	ask := func(who string) ReactionFunc {
		return func(action Action) (bool, runtime.Object, error) {
			name := ""
			if create, ok := action.(CreateAction); ok {
				name = " " + create.GetObject().(client.Object).GetName()
			}
			asked = append(asked, who+": "+action.GetVerb()+name)
			return false, nil, nil
		}
	}
	c := ExpectConfig{
		Scheme:          assertScheme,
		APIGivenObjects: []client.Object{theMap()},
		WithReactors:    []ReactionFunc{ask("first"), ask("second")},
		ExpectCreates:   []client.Object{theMap(func(cm *corev1.ConfigMap) { cm.Name, cm.GenerateName = "", "gen-" })},
	}
	config := c.Config()
	if err := config.APIReader.Get(t.Context(), client.ObjectKeyFromObject(theMap()), theMap()); err != nil {
		t.Error(err)
	}
	generated := theMap(func(cm *corev1.ConfigMap) { cm.Name, cm.GenerateName = "", "gen-" })
	if err := config.Create(t.Context(), generated); err != nil || generated.Name != "gen-001" {
		t.Errorf("got name %s and error %v, want gen-001", generated.Name, err)
	}
	if diff := cmp.Diff([]string{"first: create ", "second: create "}, asked); diff != "" {
		t.Errorf("reactions (-want +got):\n%s", diff)
	}
	c.AssertExpectations(t)
}

func TestWithClientBuilder(t *testing.T) {
	c := ExpectConfig{
		Scheme:          assertScheme,
		GivenObjects:    []client.Object{theMap(blue), theMap(green, renamed("other"))},
		APIGivenObjects: []client.Object{theMap(blue, renamed("live"))},
		WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithIndex(&corev1.ConfigMap{}, "color", func(obj client.Object) []string {
				return []string{obj.(*corev1.ConfigMap).Data["color"]}
			})
		},
	}
	config := c.Config()
	for want, reader := range map[string]client.Reader{"theme": config, "live": config.APIReader} {
		if diff := cmp.Diff([]string{want}, mustList(t, reader, client.MatchingFields{"color": "blue"})); diff != "" {
			t.Errorf("indexed (-want +got):\n%s", diff)
		}
	}
}

// What is wrong with a test is said at once, and where.
func TestConfigMistakes(t *testing.T) {
	terminating := theMap(func(cm *corev1.ConfigMap) { cm.DeletionTimestamp = new(metav1.Now()) })
	tests := map[string]struct {
		reason string
		config ExpectConfig
		want   string
	}{
		"NoScheme": {
			reason: "an assertion without a scheme",
			config: ExpectConfig{},
			want:   "ExpectConfig cannot be used:\nScheme: required, it must know the kinds of all objects",
		},
		"Everything": {
			reason: "all mistakes are reported",
			config: ExpectConfig{
				Name:                   "remote",
				Scheme:                 assertScheme,
				StatusSubResourceTypes: []client.Object{&fixture.Resource{}, nil},
				GivenObjects:           []client.Object{nil, theMap(), (*corev1.ConfigMap)(nil), &fixture.Duck{}},
				APIGivenObjects:        []client.Object{&fixture.Duck{}},
				WithReactors:           []ReactionFunc{nil},
				GivenAPIResources:      []*metav1.APIResourceList{nil, {GroupVersion: "a/b/c"}},
				GivenTracks:            []TrackRequest{{}},
			},
			want: `ExpectConfig for config "remote" cannot be used:
StatusSubResourceTypes[1]: is nil
GivenObjects[0]: is nil
GivenObjects[2]: is nil
GivenObjects[3]: the kind of *fixture.Duck is neither in the Scheme nor set on the object
APIGivenObjects[0]: the kind of *fixture.Duck is neither in the Scheme nor set on the object
WithReactors[0]: is nil
GivenTracks[0]: invalid Reference:
Kind: ` + validation.IsCIdentifier("")[0] + `
must provide either Name or Selector
GivenAPIResources[0]: is nil
GivenAPIResources[1]: GroupVersion: unexpected GroupVersion string: a/b/c`,
		},
		"NotStorable": {
			reason: "objects that no server has are distinguished",
			config: ExpectConfig{
				Scheme:                 assertScheme,
				StatusSubResourceTypes: []client.Object{nil},
				GivenObjects:           []client.Object{theMap(renamed("a")), terminating, theMap(renamed("a"))},
				APIGivenObjects:        []client.Object{terminating},
			},
			want: `ExpectConfig cannot be used:
StatusSubResourceTypes[0]: is nil
GivenObjects[1]: ConfigMap web/theme has a deletion timestamp but no finalizers, so it would no longer exist
GivenObjects[2]: ConfigMap web/a is the same object as [0]
APIGivenObjects[0]: ConfigMap web/theme has a deletion timestamp but no finalizers, so it would no longer exist`,
		},
		"Builder": {
			reason: "what the author returns is checked too",
			config: ExpectConfig{
				Scheme:            assertScheme,
				WithClientBuilder: func(*fake.ClientBuilder) *fake.ClientBuilder { return nil },
			},
			want: "ExpectConfig cannot be used:\nWithClientBuilder returns nil",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := tt.config.build(); err == nil {
				t.Errorf("%s: got no error", tt.reason)
			} else if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}

			tt.config.AssertExpectations(nil)
			if diff := cmp.Diff([]string{tt.want}, tt.config.observedErrors); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			tt.config.AssertTrackerExpectations(nil)
			if got := len(tt.config.observedErrors); got != 2 {
				t.Errorf("got %d failures after another assertion, want 2", got)
			}

			defer func() {
				if err, ok := recover().(error); !ok || err.Error() != tt.want {
					t.Errorf("panicked with %v", err)
				}
			}()
			tt.config.Config()
		})
	}
}

// notCopied is an object whose copy is none.
type notCopied struct{ client.Object }

func (notCopied) DeepCopyObject() runtime.Object { return &corev1.ConfigMapList{} }

func TestUnwrap(t *testing.T) {
	if got, err := unwrap(die{die{theMap()}}); err != nil || !cmp.Equal(client.Object(theMap()), got) {
		t.Errorf("got %v and error %v for a die", got, err)
	}
	_, err := unwrap(notCopied{})
	if want := "DeepCopyObject of testing.notCopied returns a *v1.ConfigMapList, not an object"; err == nil ||
		err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// The API of the APIReader is not made before it is used. What is wrong with it then is said then.
func TestAPIReaderFails(t *testing.T) {
	built := 0
	c := ExpectConfig{Scheme: assertScheme, WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder {
		if built++; built > 1 {
			return nil
		}
		return b
	}}
	config := c.Config()
	if built != 1 {
		t.Errorf("%d clients were built, want 1", built)
	}
	for _, err := range []error{
		config.APIReader.Get(t.Context(), client.ObjectKeyFromObject(theMap()), theMap()),
		config.APIReader.List(t.Context(), &corev1.ConfigMapList{}),
	} {
		if err == nil || err.Error() != "WithClientBuilder returns nil" {
			t.Errorf("got error %v", err)
		}
	}
}

func TestOpenAPIFails(t *testing.T) {
	boom := errors.New("boom")
	c := ExpectConfig{Scheme: assertScheme, newAPI: func(*ExpectConfig) (*api, error) { return nil, boom }}
	if _, err := c.build(); !errors.Is(err, boom) {
		t.Errorf("got error %v, want boom", err)
	}
}

// In a realistic config all clients work with one API. What was given for the APIReader only has not reached the cache
// yet.
func TestRealisticAPI(t *testing.T) {
	c := ExpectConfig{
		Scheme:          assertScheme,
		Realistic:       true,
		GivenObjects:    []client.Object{theMap(blue)},
		APIGivenObjects: []client.Object{theMap(green), theMap(renamed("late"))},
	}
	config := c.Config()
	if diff := cmp.Diff([]string{"late", "theme"}, mustList(t, config.APIReader)); diff != "" {
		t.Errorf("objects for APIReader (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"theme"}, mustList(t, config)); diff != "" {
		t.Errorf("objects for Client (-want +got):\n%s", diff)
	}

	late := theMap(renamed("late"))
	read := theMap(renamed("unchanged"))
	if err := config.Get(t.Context(), client.ObjectKeyFromObject(late), read); !apierrs.IsNotFound(err) {
		t.Errorf("got error %v for an object that is not in the cache", err)
	}
	if diff := cmp.Diff(theMap(renamed("unchanged")), read); diff != "" {
		t.Errorf("a failing Get has changed the object (-want +got):\n%s", diff)
	}
	if err := config.Create(t.Context(), late.DeepCopy()); !apierrs.IsAlreadyExists(err) {
		t.Errorf("got error %v for creating an object that exists", err)
	}

	if err := config.Patch(
		t.Context(), late, client.RawPatch(types.MergePatchType, []byte(`{"data":{"color":"blue"}}`)),
	); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"late", "theme"}, mustList(t, config)); diff != "" {
		t.Errorf("objects for Client after a change (-want +got):\n%s", diff)
	}
	if err := config.Create(t.Context(), theMap(renamed("new"))); err != nil {
		t.Fatal(err)
	}
	config.Client.(TestClient).AddGiven(theMap(renamed("added")))
	if diff := cmp.Diff([]string{"added", "late", "new", "theme"}, mustList(t, config.APIReader)); diff != "" {
		t.Errorf("objects for APIReader after changes (-want +got):\n%s", diff)
	}
}

// givenResources are served in two versions.
func givenResources() []*metav1.APIResourceList {
	return []*metav1.APIResourceList{
		{
			GroupVersion: "example.com/v1",
			APIResources: []metav1.APIResource{
				{Name: "resources", SingularName: "resource", Kind: "Resource", Namespaced: true},
				{Name: "resources/status", Kind: "Resource", Namespaced: true},
				{Name: "planets", Kind: "Planet"},
				{Name: "people", SingularName: "person", Group: "other.com", Version: "v2", Kind: "Person", Namespaced: true},
			},
		},
		{
			GroupVersion: "example.com/v1alpha1",
			APIResources: []metav1.APIResource{{Name: "planets", SingularName: "planet", Kind: "Planet"}},
		},
	}
}

func TestGivenAPIResources(t *testing.T) {
	given := givenResources()
	config := (&ExpectConfig{Scheme: assertScheme, GivenAPIResources: given}).Config()

	got, err := config.Discovery.ServerResourcesForGroupVersion("example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given[0], got); diff != "" {
		t.Errorf("discovered (-want +got):\n%s", diff)
	}
	if got == given[0] {
		t.Error("discovery has the list of the author, not a copy")
	}
	if _, err := config.Discovery.ServerResourcesForGroupVersion("example.com/v2"); !apierrs.IsNotFound(err) {
		t.Errorf("got error %v for a version that is not served", err)
	}

	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	for resource, want := range map[schema.GroupVersionResource]schema.GroupVersionKind{
		group.WithResource("resources"):                         group.WithKind("Resource"),
		group.WithResource("resource"):                          group.WithKind("Resource"),
		group.WithResource("planet"):                            group.WithKind("Planet"),
		{Group: "other.com", Version: "v2", Resource: "people"}: {Group: "other.com", Version: "v2", Kind: "Person"},
		{Group: "other.com", Version: "v2", Resource: "person"}: {Group: "other.com", Version: "v2", Kind: "Person"},
		{
			Group: group.Group, Version: "v1alpha1", Resource: "planets",
		}: {Group: group.Group, Version: "v1alpha1", Kind: "Planet"},
	} {
		if got, err := config.RESTMapper().KindFor(resource); err != nil || got != want {
			t.Errorf("%s is mapped to %s, want %s: %v", resource, got, want, err)
		}
	}
	for kind, want := range map[string]*meta.RESTMapping{
		"Resource": {
			Resource: group.WithResource("resources"), GroupVersionKind: group.WithKind("Resource"),
			Scope: meta.RESTScopeNamespace,
		},
		"Planet": {
			Resource: group.WithResource("planets"), GroupVersionKind: group.WithKind("Planet"), Scope: meta.RESTScopeRoot,
		},
	} {
		got, err := config.RESTMapper().RESTMapping(group.WithKind(kind).GroupKind())
		if err != nil {
			t.Fatal(err)
		}
		if *got != *want {
			t.Errorf("%s is mapped to %v, want %v", kind, got, want)
		}
	}
}

// A mapper of the author's own is not replaced.
func TestMapperOfClientBuilder(t *testing.T) {
	gvk := fixture.GroupVersion.WithKind("Resource")
	config := (&ExpectConfig{
		Scheme:            assertScheme,
		GivenAPIResources: givenResources(),
		WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(gvk, meta.RESTScopeRoot)
			return b.WithRESTMapper(mapper)
		},
	}).Config()
	if namespaced, err := config.IsObjectNamespaced(&fixture.Resource{}); namespaced || err != nil {
		t.Errorf("namespaced %t and error %v, want what the mapper says: false", namespaced, err)
	}
	if _, err := config.RESTMapper().RESTMapping(
		schema.GroupKind{Group: "example.com", Kind: "Planet"}, "v1",
	); !meta.IsNoMatchError(err) {
		t.Errorf("got error %v for a kind that the mapper does not know", err)
	}
}

func newGadget(name string) *unstructured.Unstructured {
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"})
	gadget.SetNamespace("my-namespace")
	gadget.SetName(name)
	return gadget
}

func gadgetList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "GadgetList"})
	return list
}

func TestExpectConfig_givenProblems(t *testing.T) {
	terminating := &corev1.ConfigMap{ObjectMeta: objectMeta("terminating")}
	terminating.DeletionTimestamp = new(metav1.Now())
	finalized := terminating.DeepCopy()
	finalized.Name, finalized.Finalizers = "finalized", []string{"example.com/wait"}
	tests := map[string]struct {
		config ExpectConfig
		// want are the prefixes of the lines.
		want []string
	}{
		"none": {ExpectConfig{GivenObjects: []client.Object{
			&corev1.ConfigMap{ObjectMeta: objectMeta("one")}, &corev1.ConfigMap{ObjectMeta: objectMeta("two")},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, &corev1.Secret{ObjectMeta: objectMeta("one")},
			newGadget("one"), finalized,
		}}, []string{"<nil>"}},
		"objects": {
			ExpectConfig{
				GivenObjects: []client.Object{
					&corev1.ConfigMap{ObjectMeta: objectMeta("one")},
					&corev1.Secret{ObjectMeta: objectMeta("one")},
					&corev1.ConfigMap{ObjectMeta: objectMeta("one")},
					terminating,
				},
				APIGivenObjects: []client.Object{nil, &fixture.Duck{ObjectMeta: objectMeta("one")}},
			},
			[]string{
				"ExpectConfig cannot be used:",
				"GivenObjects[2]: ConfigMap my-namespace/one is the same object as [0]",
				"GivenObjects[3]: ConfigMap my-namespace/terminating has a deletion timestamp but no finalizers, so it would " +
					"no longer exist",
				"APIGivenObjects[0]: is nil",
				"APIGivenObjects[1]: the kind of *fixture.Duck is neither in the Scheme nor set on the object",
			},
		},
		"no builder": {
			ExpectConfig{WithClientBuilder: func(*fake.ClientBuilder) *fake.ClientBuilder { return nil }},
			[]string{"ExpectConfig cannot be used:", "WithClientBuilder returns nil"},
		},
		"builder": {
			ExpectConfig{
				WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjects(terminating) },
			},
			[]string{"ExpectConfig cannot be used:", "unable to build the fake client: failed to add object"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.config.Scheme = fixture.NewScheme()
			_, err := test.config.build()
			got := strings.Split(fmt.Sprint(err), "\n")
			if len(got) != len(test.want) {
				t.Fatalf("error = %v", err)
			}
			for i, want := range test.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("line %d = %q, want %q", i, got[i], want)
				}
			}
		})
	}
}

// Partial metadata is stored as an object of its kind, and does not change the scheme.
func TestExpectConfig_givenMetadata(t *testing.T) {
	config := &ExpectConfig{Scheme: fixture.NewScheme()}
	kinds := len(config.Scheme.AllKnownTypes())
	for _, kind := range []schema.GroupVersionKind{
		newGadget("").GroupVersionKind(), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	} {
		metadata := &metav1.PartialObjectMetadata{ObjectMeta: objectMeta("one")}
		metadata.SetGroupVersionKind(kind)
		config.GivenObjects = append(config.GivenObjects, metadata)
	}
	c := config.Config()
	gadgets, configMaps := gadgetList(), &corev1.ConfigMapList{}
	if err := errors.Join(c.List(t.Context(), gadgets), c.List(t.Context(), configMaps)); err != nil {
		t.Fatal(err)
	}
	if len(gadgets.Items) != 1 || len(configMaps.Items) != 1 {
		t.Errorf("gadgets = %v, config maps = %v", gadgets.Items, configMaps.Items)
	}
	if after := len(config.Scheme.AllKnownTypes()); after != kinds {
		t.Errorf("the scheme has %d kinds, %d before", after, kinds)
	}
}
