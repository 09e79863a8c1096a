// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

var assertScheme = fixture.NewScheme()

// theMap is the ConfigMap that everything in this file happens to, after the edits.
func theMap(edits ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	return With(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "theme"}}, edits...)
}

// theResource is the one everything happens to that needs a status.
func theResource(edits ...func(*fixture.Resource)) *fixture.Resource {
	return With(&fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}, edits...)
}

func blue(cm *corev1.ConfigMap)  { cm.Data = map[string]string{"color": "blue"} }
func green(cm *corev1.ConfigMap) { cm.Data = map[string]string{"color": "green"} }
func large(r *fixture.Resource)  { r.Status.Fields = map[string]string{"size": "large"} }
func small(r *fixture.Resource)  { r.Status.Fields = map[string]string{"size": "small"} }
func appliedStatus() ApplyRef {
	return NewApplyRef(NewApplySubresourceAction(statusConfiguration(), "status"))
}

func appliedMap(to string) ApplyRef {
	return NewApplyRef(NewApplyAction(corev1ac.ConfigMap("theme", "web").WithData(map[string]string{"color": to})))
}

func statusConfiguration() runtime.ApplyConfiguration {
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fixture.GroupVersion.String(), "kind": "Resource",
		"metadata": map[string]any{"namespace": "web", "name": "blog"},
		"status":   map[string]any{"fields": map[string]any{"size": "large"}},
	}})
}

// assertions has an entry for everything that is asserted, in the order in which it is.
var assertions = []struct {
	field, item string
	assert      func(*ExpectConfig, *testing.T)
	// do does it.
	do func(context.Context, reconcilers.Config) error
	// right expects that it is done, wrong expects something else instead.
	right, wrong func(*ExpectConfig)
	// text is how it is described, diff are lines that tell wrong from right.
	text string
	diff []string
}{
	{
		field: "ExpectApplies", item: "Apply", assert: (*ExpectConfig).AssertClientApplyExpectations,
		do: func(ctx context.Context, c reconcilers.Config) error {
			return c.Apply(
				ctx, corev1ac.ConfigMap("theme", "web").WithData(map[string]string{"color": "blue"}), client.FieldOwner("test"),
			)
		},
		right: func(c *ExpectConfig) { c.ExpectApplies = []ApplyRef{appliedMap("blue")} },
		wrong: func(c *ExpectConfig) { c.ExpectApplies = []ApplyRef{appliedMap("green")} },
		text:  "ConfigMap web/theme",
		diff:  []string{`-"data":map[string]any{"color":string("green")}`, `+"data":map[string]any{"color":string("blue")}`},
	},
	{
		field: "ExpectCreates", item: "Create", assert: (*ExpectConfig).AssertClientCreateExpectations,
		do: func(ctx context.Context, c reconcilers.Config) error {
			return c.Create(ctx, theMap(blue, renamed("new")))
		},
		right: func(c *ExpectConfig) { c.ExpectCreates = []client.Object{theMap(blue, renamed("new"))} },
		wrong: func(c *ExpectConfig) { c.ExpectCreates = []client.Object{theMap(green, renamed("new"))} },
		text:  "ConfigMap web/new",
		diff:  []string{`-Data:map[string]string{"color":"green"}`, `+Data:map[string]string{"color":"blue"}`},
	},
	{
		field: "ExpectUpdates", item: "Update", assert: (*ExpectConfig).AssertClientUpdateExpectations,
		do:    func(ctx context.Context, c reconcilers.Config) error { return c.Update(ctx, theMap(blue)) },
		right: func(c *ExpectConfig) { c.ExpectUpdates = []client.Object{theMap(blue)} },
		wrong: func(c *ExpectConfig) { c.ExpectUpdates = []client.Object{theMap(green)} },
		text:  "ConfigMap web/theme",
		diff:  []string{`-Data:map[string]string{"color":"green"}`, `+Data:map[string]string{"color":"blue"}`},
	},
	{
		field: "ExpectPatches", item: "Patch", assert: (*ExpectConfig).AssertClientPatchExpectations,
		do: func(ctx context.Context, c reconcilers.Config) error {
			return c.Patch(ctx, theMap(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"color":"blue"}}`)))
		},
		right: func(c *ExpectConfig) {
			c.ExpectPatches = []PatchRef{{
				Kind: "ConfigMap", Namespace: "web", Name: "theme",
				PatchType: types.MergePatchType, Patch: []byte(`{"data":{"color":"blue"}}`),
			}}
		},
		wrong: func(c *ExpectConfig) {
			c.ExpectPatches = []PatchRef{{
				Kind: "ConfigMap", Namespace: "web", Name: "theme",
				PatchType: types.MergePatchType, Patch: []byte(`{"data":{"color":"green"}}`),
			}}
		},
		text: `ConfigMap web/theme: application/merge-patch+json {"data":{"color":"blue"}}`,
		diff: []string{`"green"`, `"blue"`},
	},
	{
		field: "ExpectDeletes", item: "Delete", assert: (*ExpectConfig).AssertClientDeleteExpectations,
		do:    func(ctx context.Context, c reconcilers.Config) error { return c.Delete(ctx, theMap()) },
		right: func(c *ExpectConfig) { c.ExpectDeletes = []DeleteRef{NewDeleteRefFromObject(theMap(), assertScheme)} },
		wrong: func(c *ExpectConfig) {
			c.ExpectDeletes = []DeleteRef{{Kind: "Secret", Namespace: "web", Name: "theme"}}
		},
		text: "ConfigMap web/theme",
		diff: []string{`-Kind:"Secret"`, `+Kind:"ConfigMap"`},
	},
	{
		field: "ExpectDeleteCollections", item: "DeleteCollection",
		assert: (*ExpectConfig).AssertClientDeleteCollectionExpectations,
		do: func(ctx context.Context, c reconcilers.Config) error {
			return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("web"), client.MatchingLabels{"app": "blog"})
		},
		right: func(c *ExpectConfig) {
			c.ExpectDeleteCollections = []DeleteCollectionRef{{
				Kind: "ConfigMap", Namespace: "web", Labels: labels.SelectorFromSet(labels.Set{"app": "blog"}),
			}}
		},
		wrong: func(c *ExpectConfig) {
			c.ExpectDeleteCollections = []DeleteCollectionRef{{Kind: "ConfigMap", Namespace: "web"}}
		},
		text: "ConfigMap web/* with labels app=blog",
		diff: []string{`app=blog`},
	},
	{
		field: "ExpectStatusUpdates", item: "StatusUpdate", assert: (*ExpectConfig).AssertClientStatusUpdateExpectations,
		do: func(ctx context.Context, c reconcilers.Config) error {
			r := theResource()
			if err := c.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
				return err
			}
			large(r)
			return c.Status().Update(ctx, r)
		},
		right: func(c *ExpectConfig) { c.ExpectStatusUpdates = []client.Object{theResource(large)} },
		wrong: func(c *ExpectConfig) { c.ExpectStatusUpdates = []client.Object{theResource(small)} },
		text:  "Resource.fixture.trueup.dev web/blog",
		diff:  []string{`"small"`, `"large"`},
	},
	{
		field: "ExpectStatusPatches", item: "StatusPatch", assert: (*ExpectConfig).AssertClientStatusPatchExpectations,
		do: func(ctx context.Context, c reconcilers.Config) error {
			return c.Status().Patch(ctx, theResource(), client.RawPatch(types.MergePatchType, []byte(`{"status":{}}`)))
		},
		right: func(c *ExpectConfig) {
			c.ExpectStatusPatches = []PatchRef{{
				Group: fixture.GroupVersion.Group, Kind: "Resource", Namespace: "web", Name: "blog", SubResource: "status",
				PatchType: types.MergePatchType, Patch: []byte(`{"status":{}}`),
			}}
		},
		wrong: func(c *ExpectConfig) {
			c.ExpectStatusPatches = []PatchRef{{
				Group: fixture.GroupVersion.Group, Kind: "Resource", Namespace: "web", Name: "blog",
				PatchType: types.MergePatchType, Patch: []byte(`{"status":{}}`),
			}}
		},
		text: `Resource.fixture.trueup.dev/status web/blog: application/merge-patch+json {"status":{}}`,
		diff: []string{`-SubResource:""`, `+SubResource:"status"`},
	},
	{
		field: "ExpectStatusApplies", item: "StatusApply", assert: (*ExpectConfig).AssertClientStatusApplyExpectations,
		do: func(ctx context.Context, c reconcilers.Config) error {
			return c.Status().Apply(ctx, statusConfiguration(), client.FieldOwner("test"))
		},
		right: func(c *ExpectConfig) { c.ExpectStatusApplies = []ApplyRef{appliedStatus()} },
		wrong: func(c *ExpectConfig) { c.ExpectStatusApplies = []ApplyRef{appliedMap("blue")} },
		text:  "Resource.fixture.trueup.dev web/blog",
		diff:  []string{`-Kind:"ConfigMap"`, `+Kind:"Resource"`},
	},
	{
		field: "ExpectSubResources", item: "SubResource", assert: (*ExpectConfig).AssertClientSubResourceExpectations,
		do: func(ctx context.Context, c reconcilers.Config) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog-0"}}
			return c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
				DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(5))},
			})
		},
		right: func(c *ExpectConfig) { c.ExpectSubResources = []SubResourceRef{eviction(5)} },
		wrong: func(c *ExpectConfig) { c.ExpectSubResources = []SubResourceRef{eviction(6)} },
		text:  "create Pod/eviction web/blog-0",
		diff:  []string{`-GracePeriodSeconds:&6`, `+GracePeriodSeconds:&5`},
	},
	{
		field: "ExpectEvents", item: "Event", assert: (*ExpectConfig).AssertRecorderExpectations,
		do: func(_ context.Context, c reconcilers.Config) error {
			c.Recorder.Eventf(theMap(), corev1.EventTypeNormal, "Painted", "it is %s now", "blue")
			return nil
		},
		right: func(c *ExpectConfig) {
			c.ExpectEvents = []Event{NewEvent(theMap(), assertScheme, corev1.EventTypeNormal, "Painted", "it is %s now", "blue")}
		},
		wrong: func(c *ExpectConfig) {
			c.ExpectEvents = []Event{
				NewEvent(theMap(), assertScheme, corev1.EventTypeNormal, "Painted", "it is %s now", "green"),
			}
		},
		text: "Normal Painted on ConfigMap web/theme: it is blue now",
		diff: []string{`-Message:"itisgreennow"`, `+Message:"itisbluenow"`},
	},
	{
		field: "ExpectTracks", item: "Track", assert: (*ExpectConfig).AssertTrackerExpectations,
		do: func(_ context.Context, c reconcilers.Config) error {
			return c.Tracker.TrackObject(theMap(), theResource())
		},
		right: func(c *ExpectConfig) {
			c.ExpectTracks = []TrackRequest{NewTrackRequest(theMap(), theResource(), assertScheme)}
		},
		wrong: func(c *ExpectConfig) {
			c.ExpectTracks = []TrackRequest{CreateTrackRequest("", "ConfigMap", "web", "other").By("web", "blog")}
		},
		text: "{web/blog { /} { ConfigMap web theme <nil>}}",
		diff: []string{`-Name:"other"`, `+Name:"theme"`},
	},
}

func renamed(name string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Name = name }
}

func eviction(grace int64) SubResourceRef {
	return SubResourceRef{
		Verb: "create", Kind: "Pod", Namespace: "web", Name: "blog-0", SubResource: "eviction",
		Body: &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &grace}},
	}
}

// newAssertConfig returns a config in which everything can be done that is asserted.
func newAssertConfig(name string) *ExpectConfig {
	return &ExpectConfig{
		Name:                   name,
		Scheme:                 assertScheme,
		StatusSubResourceTypes: []client.Object{&fixture.Resource{}},
		GivenObjects:           []client.Object{theMap(), theResource()},
		ExpectSubResources:     []SubResourceRef{},
	}
}

func (c *ExpectConfig) mustDo(t *testing.T, do func(context.Context, reconcilers.Config) error) {
	t.Helper()
	if err := do(t.Context(), c.Config()); err != nil {
		t.Fatal(err)
	}
}

func TestAssertions(t *testing.T) {
	for _, tt := range assertions {
		for name, suffix := range map[string]string{"": "", "default": "", "remote": ` for config "remote"`} {
			t.Run(tt.item+name, func(t *testing.T) {
				check := func(what string, c *ExpectConfig, want ...string) {
					t.Helper()
					c.AssertExpectations(nil)
					if diff := cmp.Diff(want, c.observedErrors); diff != "" {
						t.Errorf("%s (-want +got):\n%s", what, diff)
					}
				}

				c := newAssertConfig(name)
				tt.right(c)
				c.mustDo(t, tt.do)
				check("done as expected", c)

				c = newAssertConfig(name)
				tt.right(c)
				check("not done", c, tt.field+"[0] not observed"+suffix+": "+tt.text)

				c = newAssertConfig(name)
				c.mustDo(t, tt.do)
				check("not expected", c, "Unexpected "+tt.item+" observed"+suffix+": "+tt.text)

				c = newAssertConfig(name)
				tt.wrong(c)
				c.mustDo(t, tt.do)
				c.AssertExpectations(nil)
				if len(c.observedErrors) != 1 {
					t.Fatalf("another was done: got failures %q, want one", c.observedErrors)
				}
				title, diff, _ := strings.Cut(c.observedErrors[0], "\n")
				if want := tt.field + "[0] differs" + suffix + " (-expected, +actual):"; title != want {
					t.Errorf("another was done: got %q, want %q", title, want)
				}
				if !strings.HasSuffix(diff, "\n") {
					t.Errorf("another was done: the difference has to end with a newline: %q", diff)
				}
				// The spaces that cmp.Diff uses are not the same every time.
				diff = strings.Join(strings.Fields(strings.ReplaceAll(diff, "\u00a0", " ")), "")
				for _, line := range tt.diff {
					if !strings.Contains(diff, line) {
						t.Errorf("another was done: the difference has no %s: %s", line, diff)
					}
				}
			})
		}
	}
}

// Everything is reported, kind by kind and call by call.
func TestAssertionOrder(t *testing.T) {
	c := newAssertConfig("")
	var want []string
	for _, tt := range assertions {
		tt.right(c)
		want = append(want, tt.field+"[0] not observed: "+tt.text)
	}
	c.AssertExpectations(nil)
	if diff := cmp.Diff(want, c.observedErrors); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// Each of the methods reports its own and nothing else.
func TestAssertionMethods(t *testing.T) {
	for _, tt := range assertions {
		t.Run(tt.item, func(t *testing.T) {
			c := newAssertConfig("")
			for _, other := range assertions {
				other.right(c)
			}
			tt.assert(c, nil)
			if diff := cmp.Diff([]string{tt.field + "[0] not observed: " + tt.text}, c.observedErrors); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

// Expectations are compared by position. What is too much is reported one by one.
func TestAssertionPositions(t *testing.T) {
	c := newAssertConfig("")
	create := func(names ...string) {
		for _, name := range names {
			c.mustDo(t, func(ctx context.Context, config reconcilers.Config) error {
				return config.Create(ctx, theMap(renamed(name)))
			})
		}
	}
	c.ExpectCreates = []client.Object{theMap(renamed("a")), theMap(renamed("b"))}
	create("a", "c", "b", "d")
	c.AssertExpectations(nil)
	var titles []string
	for _, failure := range c.observedErrors {
		title, _, _ := strings.Cut(failure, "\n")
		titles = append(titles, title)
	}
	want := []string{
		"ExpectCreates[1] differs (-expected, +actual):",
		"Unexpected Create observed: ConfigMap web/b",
		"Unexpected Create observed: ConfigMap web/d",
	}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// A test that passes has no failures, and can tell.
func TestAssertionsPass(t *testing.T) {
	c := newAssertConfig("")
	for _, tt := range assertions {
		tt.right(c)
		c.mustDo(t, tt.do)
	}
	c.AssertExpectations(t)
	if diff := cmp.Diff([]string(nil), c.observedErrors); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

func TestTracksAreNormalized(t *testing.T) {
	c := newAssertConfig("")
	c.ExpectTracks = []TrackRequest{{
		Tracker: types.NamespacedName{Namespace: "web", Name: "blog"},
		Tracked: tracker.NewKey(corev1.SchemeGroupVersion.WithKind("ConfigMap"), types.NamespacedName{Namespace: "web", Name: "theme"}), //nolint:staticcheck // still accepted
	}}
	c.mustDo(t, func(_ context.Context, c reconcilers.Config) error {
		return c.Tracker.TrackObject(theMap(), theResource())
	})
	c.AssertExpectations(t)
}

// die is an object that unwraps to another one when it is copied, as generated builders of test objects do.
type die struct {
	client.Object
}

func (d die) DeepCopyObject() runtime.Object { return d.Object.DeepCopyObject() }

// u returns the unstructured form of what is expected of a status, with or without its kind.
func u(kind, name, size string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{
		Object: map[string]any{"status": map[string]any{"fields": map[string]any{"size": size}}},
	}
	obj.SetNamespace("web")
	obj.SetName(name)
	if kind != "" {
		obj.SetGroupVersionKind(fixture.GroupVersion.WithKind(kind))
	}
	return obj
}

// statusBlind is a Differ that finds no difference in any status.
type statusBlind struct{ Differ }

func (statusBlind) ResourceStatusUpdate(_, _ client.Object) string { return "" }

func TestStatusExpectations(t *testing.T) {
	typed := func(edits ...func(*fixture.Resource)) client.Object { return theResource(append(edits, large)...) }
	tests := map[string]struct {
		reason           string
		differ           Differ
		updated, expects client.Object
		// want are parts of the difference.
		want []string
	}{
		"Same": {reason: "all is as expected", updated: typed(), expects: typed()},
		"Spec": {
			reason: "the status is written, nothing else", updated: typed(),
			expects: typed(func(r *fixture.Resource) { r.Spec.ErrOnMarshal = true }),
		},
		"Status": {
			reason: "the status differs", updated: typed(), expects: theResource(small), want: []string{"small", "large"},
		},
		"Name": {
			reason: "this is another object", updated: typed(), expects: typed(func(r *fixture.Resource) { r.Name = "shop" }),
			want: []string{"shop", "blog"},
		},
		"Namespace": {
			reason: "this is another object", updated: typed(), expects: typed(func(r *fixture.Resource) { r.Namespace = "" }),
			want: []string{"Namespace"},
		},
		"NameOwnDiffer": {
			reason: "objects are identified without the Differ", differ: statusBlind{}, updated: typed(),
			expects: typed(func(r *fixture.Resource) { r.Name = "shop" }), want: []string{"shop", "blog"},
		},
		"KindOwnDiffer": {
			reason: "objects are identified without the Differ", differ: statusBlind{}, updated: typed(),
			expects: &corev1.Pod{ObjectMeta: theResource().ObjectMeta}, want: []string{"Pod", "Resource"},
		},
		"StatusOwnDiffer": {
			reason: "the Differ decides what to make of a status", differ: statusBlind{}, updated: typed(),
			expects: theResource(small),
		},
		"Unstructured": {
			reason: "all is as expected", updated: u("Resource", "blog", "large"), expects: u("Resource", "blog", "large"),
		},
		"UnstructuredNoKind": {
			reason: "expectations need no kind", updated: u("Resource", "blog", "large"), expects: u("", "blog", "large"),
		},
		"UnstructuredKind": {
			reason: "this is another object", updated: u("Resource", "blog", "large"), expects: u("Other", "blog", "large"),
			want: []string{"Other", "Resource"},
		},
		"UnstructuredName": {
			reason: "this is another object", updated: u("Resource", "blog", "large"), expects: u("", "shop", "large"),
			want: []string{"shop", "blog"},
		},
		"UnstructuredStatus": {
			reason: "the status differs", updated: u("Resource", "blog", "large"), expects: u("", "blog", "small"),
			want: []string{"small", "large"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newAssertConfig("")
			c.Differ = tt.differ
			c.ExpectStatusUpdates = []client.Object{tt.expects}
			// That it was attempted is enough, see TestFailedCallsAreObserved.
			_ = c.Config().Status().Update(t.Context(), tt.updated)
			before := tt.expects.DeepCopyObject()
			c.AssertExpectations(nil)
			if got := len(c.observedErrors); got != min(len(tt.want), 1) {
				t.Fatalf("%s: got failures %q", tt.reason, c.observedErrors)
			}
			for _, want := range tt.want {
				if !strings.Contains(c.observedErrors[0], want) {
					t.Errorf("%s: the difference has no %q: %s", tt.reason, want, c.observedErrors[0])
				}
			}
			if diff := cmp.Diff(before, tt.expects); diff != "" {
				t.Errorf("the expectation was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestFailedCallsAreObserved(t *testing.T) {
	verbs := map[string]string{
		"Apply": "apply", "Create": "create", "Update": "update", "Patch": "patch", "Delete": "delete",
		"DeleteCollection": "delete-collection",
		"StatusUpdate":     "update", "StatusPatch": "patch", "StatusApply": "apply", "SubResource": "create",
	}
	for _, tt := range assertions {
		verb, ok := verbs[tt.item]
		if !ok {
			continue
		}
		t.Run(tt.item, func(t *testing.T) {
			c := newAssertConfig("")
			for _, kind := range []string{"ConfigMap", "Resource", "Pod"} {
				c.WithReactors = append(c.WithReactors, InduceFailure(verb, kind))
			}
			tt.right(c)
			if err := tt.do(t.Context(), c.Config()); err == nil {
				t.Error("no failure was induced")
			}
			c.AssertExpectations(t)
		})
	}
}

func TestExpectedObjects(t *testing.T) {
	create := func(ctx context.Context, c reconcilers.Config) error { return c.Create(ctx, theMap(renamed("new"))) }

	t.Run("Dies", func(t *testing.T) {
		c := newAssertConfig("")
		c.ExpectCreates = []client.Object{die{theMap(renamed("new"))}}
		c.mustDo(t, create)
		c.AssertExpectations(t)
	})
	t.Run("Nil", func(t *testing.T) {
		c := newAssertConfig("")
		c.ExpectCreates = []client.Object{nil, (*corev1.ConfigMap)(nil)}
		c.mustDo(t, create)
		c.AssertExpectations(nil)
		want := []string{
			"ExpectCreates[0] differs (-expected, +actual):\nthe expected object is nil\n",
			"ExpectCreates[1] not observed: <nil>",
		}
		if diff := cmp.Diff(want, c.observedErrors); diff != "" {
			t.Errorf("failures (-want +got):\n%s", diff)
		}
	})
	t.Run("GenerateName", func(t *testing.T) {
		c := newAssertConfig("")
		c.mustDo(t, func(ctx context.Context, c reconcilers.Config) error {
			return c.Create(ctx, theMap(func(cm *corev1.ConfigMap) { cm.Name, cm.GenerateName = "", "new-" }))
		})
		c.AssertExpectations(nil)
		if diff := cmp.Diff([]string{"Unexpected Create observed: ConfigMap web/new-*"}, c.observedErrors); diff != "" {
			t.Errorf("failures (-want +got):\n%s", diff)
		}
	})
}

// What an API adds is left out of comparisons, and of what is shown.
func TestNormalizedObjects(t *testing.T) {
	c := newAssertConfig("")
	c.newAPI = func(c *ExpectConfig) (*api, error) {
		api, err := newFakeAPI(c)
		if err != nil {
			return nil, err
		}
		api.normalize = func(expected, observed client.Object) (client.Object, client.Object) {
			observed = observed.DeepCopyObject().(client.Object)
			if expected.GetLabels() == nil {
				observed.SetLabels(nil)
			}
			return expected, observed
		}
		return api, nil
	}
	labeled := func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"by": "server"} }
	c.ExpectCreates = []client.Object{theMap(renamed("a"))}
	c.mustDo(t, func(ctx context.Context, c reconcilers.Config) error {
		return c.Create(ctx, theMap(renamed("a"), labeled))
	})
	c.AssertExpectations(t)

	c.mustDo(t, func(ctx context.Context, c reconcilers.Config) error {
		return c.Create(ctx, theMap(renamed("b"), labeled))
	})
	e := c.objects("ExpectCreates", "Create", c.ExpectCreates, c.opened.client.CreateActions, c.differ().ResourceCreate)
	if diff := cmp.Diff([]client.Object{theMap(renamed("a")), theMap(renamed("b"))}, e.observed); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}

	sent := eviction(5)
	sent.Body.SetLabels(map[string]string{"by": "server"})
	if diff := c.diffSubResource(eviction(5), sent); diff != "" {
		t.Errorf("subresource (-want +got):\n%s", diff)
	}
}

func TestSubResourcesAreExecuted(t *testing.T) {
	tests := map[string]struct {
		reason   string
		config   ExpectConfig
		executes bool
	}{
		"InMemory":  {reason: "they only seem to succeed"},
		"Realistic": {reason: "there is no such pod", config: ExpectConfig{Realistic: true}, executes: true},
		"OtherAPI":  {reason: "there is no such pod", config: ExpectConfig{newAPI: newFakeAPI}, executes: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.config.Scheme = assertScheme
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog-0"}}
			err := tt.config.Config().SubResource("eviction").Create(t.Context(), pod, eviction(5).Body)
			if apierrs.IsNotFound(err) != tt.executes || (err != nil) != tt.executes {
				t.Errorf("%s: got error %v", tt.reason, err)
			}
		})
	}
}

func TestSubResourceExpectations(t *testing.T) {
	evict := func(ctx context.Context, c reconcilers.Config) error {
		for _, tt := range assertions {
			if tt.item == "SubResource" {
				return tt.do(ctx, c)
			}
		}
		return nil
	}
	unexpected := []string{"Unexpected SubResource observed: create Pod/eviction web/blog-0"}
	wrappedEviction := eviction(5)
	wrappedEviction.Body = die{wrappedEviction.Body}
	tests := map[string]struct {
		reason    string
		expects   []SubResourceRef
		realistic bool
		want      []string
	}{
		"NotAsserted": {reason: "what was silently accepted still is"},
		"None":        {reason: "an empty list says that there are none", expects: []SubResourceRef{}, want: unexpected},
		"Realistic":   {reason: "nothing is silently accepted", realistic: true, want: unexpected},
		"Expected":    {reason: "all is as expected", realistic: true, expects: []SubResourceRef{eviction(5)}},
		"Dies":        {reason: "what they unwrap to is expected", expects: []SubResourceRef{wrappedEviction}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newAssertConfig("")
			c.GivenObjects = append(c.GivenObjects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog-0"}})
			c.ExpectSubResources, c.Realistic = tt.expects, tt.realistic
			c.mustDo(t, evict)
			c.AssertExpectations(nil)
			if diff := cmp.Diff(tt.want, c.observedErrors); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}
