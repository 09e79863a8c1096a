// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// How the texts are printed is tested with the cases, which print them.
func TestPaste(t *testing.T) {
	want := "\nobserved, as an expectation:\nExpectDeletes: []rtesting.DeleteRef{\n\t{Kind: \"ConfigMap\", Namespace: " +
		"\"web\", Name: \"theme\"},\n},"
	e := expectation[DeleteRef]{
		field: "ExpectDeletes", elem: "rtesting.DeleteRef",
		observed: []DeleteRef{{Group: "untidy", Kind: "ConfigMap", Namespace: "web", Name: "theme"}},
		tidy: func(observed DeleteRef) DeleteRef {
			observed.Group = ""
			return observed
		},
	}
	if diff := cmp.Diff(want, e.paste(assertScheme)); diff != "" {
		t.Errorf("with observations (-want +got):\n%s", diff)
	}
	e.observed = nil
	if diff := cmp.Diff("\nobserved: none", e.paste(assertScheme)); diff != "" {
		t.Errorf("without (-want +got):\n%s", diff)
	}
}

// Fields that are not compared are not shown.
func TestTidy(t *testing.T) {
	c := newAssertConfig("")
	config := c.Config()
	stored := theMap()
	if err := config.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	if err := config.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	e := c.objects("ExpectUpdates", "Update", nil, c.opened.client.UpdateActions, c.differ().ResourceUpdate)
	if diff := cmp.Diff(theMap(), e.tidy(e.observed[0])); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}

	selector := labels.SelectorFromSet(labels.Set{"a": "b"})
	for name, tt := range map[string]struct{ untidy, want DeleteCollectionRef }{
		"Everything": {untidy: DeleteCollectionRef{Labels: labels.Everything(), Fields: fields.Everything()}},
		"Some": {
			untidy: DeleteCollectionRef{Labels: selector, Fields: fields.Everything()},
			want:   DeleteCollectionRef{Labels: selector},
		},
		"None": {},
	} {
		got := tt.untidy.tidy()
		if (got.Labels == nil) != (tt.want.Labels == nil) || got.Fields != nil {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	c := newAssertConfig("")
	for want, v := range map[string]any{
		"ConfigMap web/theme":                  theMap(),
		"Resource.fixture.trueup.dev web/duck": fixture.NewDuck("web", "duck"),
		"*fixture.Duck web/unknown":            &fixture.Duck{ObjectMeta: theMap(renamed("unknown")).ObjectMeta},
		"Resource.fixture.trueup.dev web/blog": u("Resource", "blog", ""),
		"Planet.example.com mars":              DeleteRef{Group: "example.com", Kind: "Planet", Name: "mars"},
		"ConfigMap web/*": DeleteCollectionRef{
			Kind: "ConfigMap", Namespace: "web", Labels: labels.Everything(),
		},
		"ConfigMap * with labels a=b with fields c=d": DeleteCollectionRef{
			Kind: "ConfigMap", Labels: labels.SelectorFromSet(labels.Set{"a": "b"}),
			Fields: fields.OneTermEqualSelector("c", "d"),
		},
		"Normal Painted on ConfigMap web/theme: Paint it is blue now": NewEventf(
			theMap(), nil, assertScheme, "Normal", "Painted", "Paint", "it is blue now",
		),
	} {
		if got := c.describe(v); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Which reactors does a failing case name? Those that answered no call.
func TestWhichReactorsMatchNothing(t *testing.T) {
	config := ExpectConfig{Scheme: scheme.Scheme, WithReactors: []ReactionFunc{
		InduceFailure("create", "ConfigMap", InduceFailureOpts{Error: errors.New("no")}),
		InduceFailure("create", "secrets"),
	}}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	if err := config.Config().Create(t.Context(), cm); err == nil {
		t.Fatal("the first reactor does not answer")
	}
	want := []string{"WithReactors[1] answered no call: if it should, compare its verb and its kind, which is not the " +
		"plural, with the calls."}
	if diff := cmp.Diff(want, config.idleReactors()); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

// What does a failing case say about a Request that names none of the given objects?
func TestDoesTheRequestNameSomethingGiven(t *testing.T) {
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}}
	cm := func(name string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	for name, tc := range map[string]struct {
		given []client.Object
		want  string
	}{
		"nothing is given": {},
		"given":            {given: []client.Object{cm("b"), cm("a")}},
		"another is given": {
			given: []client.Object{cm("b")},
			want:  "Request names default/a, which is none of GivenObjects: *v1.ConfigMap default/b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unknownRequest(request, tc.given); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
