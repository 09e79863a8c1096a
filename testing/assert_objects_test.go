// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

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
	labelled := func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"by": "server"} }
	c.ExpectCreates = []client.Object{theMap(renamed("a"))}
	c.mustDo(t, func(ctx context.Context, c reconcilers.Config) error {
		return c.Create(ctx, theMap(renamed("a"), labelled))
	})
	c.AssertExpectations(t)

	c.mustDo(t, func(ctx context.Context, c reconcilers.Config) error {
		return c.Create(ctx, theMap(renamed("b"), labelled))
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
