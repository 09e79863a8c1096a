// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
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
