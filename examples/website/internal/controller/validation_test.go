// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	websitev1 "trueup.dev/examples/website/api/v1"
)

// The API server rejects invalid specs, and names the invalid field and the reason.
func TestSpec_validation(t *testing.T) {
	e := newEnv(t)
	page := func(name string) websitev1.Page { return websitev1.Page{Name: name, Title: "Title"} }
	tests := map[string]struct {
		change func(*websitev1.Website)
		field  string
		want   string // part of the message
	}{
		"valid": {change: func(*websitev1.Website) {}},
		"domain with capitals": {
			change: func(s *websitev1.Website) { s.Spec.Domain = "Shop.example.com" },
			field:  "spec.domain", want: "must be at least two lower-case labels joined by dots, such as www.example.com",
		},
		"domain of one label": {
			change: func(s *websitev1.Website) { s.Spec.Domain = "localhost" },
			field:  "spec.domain", want: "must be at least two lower-case labels",
		},
		"too many replicas": {
			change: func(s *websitev1.Website) { s.Spec.Replicas = new(int32(21)) },
			field:  "spec.replicas", want: "should be less than or equal to 20",
		},
		"negative replicas": {
			change: func(s *websitev1.Website) { s.Spec.Replicas = new(int32(-1)) },
			field:  "spec.replicas", want: "should be greater than or equal to 0",
		},
		"no pages": {
			change: func(s *websitev1.Website) { s.Spec.Pages = []websitev1.Page{} },
			field:  "spec.pages", want: "one page must be named index",
		},
		"no index": {
			change: func(s *websitev1.Website) { s.Spec.Pages = []websitev1.Page{page("about")} },
			field:  "spec.pages", want: "one page must be named index: it is what visitors of the domain see first",
		},
		"a page twice": {
			change: func(s *websitev1.Website) { s.Spec.Pages = []websitev1.Page{page("index"), page("index")} },
			field:  "spec.pages[1]", want: "Duplicate value",
		},
		"a page whose name is not a file name": {
			change: func(s *websitev1.Website) { s.Spec.Pages = []websitev1.Page{page("index"), page("../x")} },
			field:  "spec.pages[1].name", want: "must be lower-case letters, digits and dashes, such as opening-hours",
		},
		"a page without a title": {
			change: func(s *websitev1.Website) { s.Spec.Pages[0].Title = "" },
			field:  "spec.pages[0].title", want: "should be at least 1 chars long",
		},
		"an invalid language": {
			change: func(s *websitev1.Website) { s.Spec.Languages = []websitev1.Language{{Code: "Deutsch"}} },
			field:  "spec.languages[0].code", want: "must be a lower-case language code, such as de or pt-br",
		},
		"a language twice": {
			change: func(s *websitev1.Website) { s.Spec.Languages = []websitev1.Language{{Code: "de"}, {Code: "de"}} },
			field:  "spec.languages[1]", want: "Duplicate value",
		},
		"a translation of an unknown page": {
			change: func(s *websitev1.Website) {
				s.Spec.Languages = []websitev1.Language{{Code: "de", Pages: []websitev1.Page{page("prices")}}}
			},
			field: "spec", want: "a language may only translate pages that are listed in spec.pages",
		},
		"a name that is invalid for a Service": {
			change: func(s *websitev1.Website) { s.Name = "1.shop" },
			field:  "", want: "metadata.name must start with a letter",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			site := newSite("shop")
			site.Namespace = e.Namespace
			tc.change(site)
			err := e.Create(t.Context(), site)
			if tc.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var status apierrs.APIStatus
			if !apierrs.IsInvalid(err) || !errors.As(err, &status) {
				t.Fatalf("error = %v, want Invalid", err)
			}
			for _, cause := range status.Status().Details.Causes {
				if strings.TrimPrefix(cause.Field, "<nil>") == tc.field && strings.Contains(cause.Message, tc.want) {
					return
				}
			}
			t.Errorf("no cause for %q contains %q: %+v", tc.field, tc.want, status.Status().Details.Causes)
		})
	}
}

func TestSpec_defaults(t *testing.T) {
	e := newEnv(t)
	site := newSite("shop")
	e.Add(site)
	want := newSite("shop").Spec
	want.Image, want.Replicas = "nginx:1.29", new(int32(1))
	if diff := cmp.Diff(want, site.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(metav1.ObjectMeta{}.Finalizers, site.Finalizers); diff != "" {
		t.Errorf("finalizers without a controller (-want +got):\n%s", diff)
	}
}
