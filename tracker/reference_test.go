// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestTrackReferenceValidation(t *testing.T) {
	var (
		identifier = validation.IsCIdentifier("-")[0]
		subdomain  = validation.IsDNS1123Subdomain("_")[0]
		label      = validation.IsDNS1123Label("_")[0]
	)
	tests := map[string]struct {
		reason string
		ref    Reference
		want   []string
	}{
		"Name": {
			reason: "one object of the core group",
			ref:    Reference{Kind: "ConfigMap", Namespace: "ns", Name: "theme"},
		},
		"NameWithDots": {
			reason: "names are subdomains, in a group as well",
			ref:    Reference{APIGroup: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "websites.trueup.dev"},
		},
		"Selector": {
			reason: "all objects of a namespace",
			ref:    Reference{Kind: "ConfigMap", Namespace: "ns", Selector: labels.Everything()},
		},
		"Empty": {
			reason: "kind and target are required",
			want:   []string{"Kind: " + identifier, "must provide either Name or Selector"},
		},
		"NameAndSelector": {
			reason: "Name and Selector exclude each other",
			ref:    Reference{Kind: "ConfigMap", Name: "theme", Selector: labels.Everything()},
			want:   []string{"cannot provide both Name and Selector"},
		},
		"EverythingWrong": {
			reason: "all problems are reported, sorted",
			ref:    Reference{APIGroup: "_", Kind: "Config Map", Namespace: "_", Name: "_"},
			want: []string{
				"APIGroup: " + subdomain,
				"Kind: " + identifier,
				"Name: " + subdomain,
				"Namespace: " + label,
			},
		},
		"SeveralProblemsInOneField": {
			reason: "each problem of a field has its own line",
			ref:    Reference{Kind: "ConfigMap", Name: strings.Repeat("_", 254)},
			want:   []string{"Name: " + subdomain, "Name: must be no more than 253 characters"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var want string
			if len(tt.want) != 0 {
				want = "invalid Reference:\n" + strings.Join(tt.want, "\n")
			}
			tr := newTracker(nil, time.Hour)
			var got string
			if err := tr.TrackReference(tt.ref, observerNamed("observer")); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if want != "" && len(tr.tracks.entries) != 0 {
				t.Error("an invalid reference was tracked")
			}
		})
	}
}

// An invalid reference must be rejected even if a part of it is already tracked.
func TestValidatesPartlyTrackedReference(t *testing.T) {
	tr := newTracker(nil, time.Hour)
	mustTrack(t, tr, byName, observerNamed("observer"))
	mustTrack(t, tr, bySelector, observerNamed("observer"))
	both := byName
	both.Selector = bySelector.Selector
	if err := tr.TrackReference(both, observerNamed("observer")); err == nil {
		t.Error("no error for a reference with both Name and Selector")
	}
	if err := tr.TrackReference(byName, nil); err == nil {
		t.Error("no error for a nil observer")
	}
}

// Users see references in this format in test failures.
func TestReferenceFormat(t *testing.T) {
	ref := Reference{APIGroup: "apps", Kind: "Deployment", Namespace: "ns", Name: "name"}
	if diff := cmp.Diff("{apps Deployment ns name <nil>}", fmt.Sprintf("%v", ref)); diff != "" {
		t.Errorf("format (-want +got):\n%s", diff)
	}
}

func TestNewKey(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "name"}
	got := NewKey(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, name)
	want := Key{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, NamespacedName: name}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("key (-want +got):\n%s", diff)
	}
}
