// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"trueup.dev/app"
	"trueup.dev/simple"
)

func TestOpinionatedMutator(t *testing.T) {
	const createdBy, updatedBy, updated = "grafana.com/createdBy", "grafana.com/updatedBy", "grafana.com/updateTimestamp"
	annotated := func(title string, annotations map[string]string) *Widget {
		widget := newWidget("it", title)
		widget.Annotations = annotations
		return widget
	}
	stored := map[string]string{createdBy: "ann", updatedBy: "bob", updated: "1999-01-01T00:00:00Z", "other": "kept"}
	for name, tc := range map[string]struct {
		mutator     simple.OpinionatedMutator
		object, old *Widget
		want        map[string]string
	}{
		"created": {
			object: annotated("a", map[string]string{createdBy: "forged", updatedBy: "forged"}),
			want:   map[string]string{createdBy: "eve", updated: "2000-01-01T00:00:00Z"},
		},
		"updated": {
			object: annotated("b", map[string]string{createdBy: "forged", "other": "kept"}), old: annotated("a", stored),
			want: map[string]string{
				createdBy: "ann", updatedBy: "eve", updated: "2000-01-01T00:00:00Z", "other": "kept",
			},
		},
		"not changed": {object: annotated("a", stored), old: annotated("a", stored), want: stored},
		"only a finalizer": {
			object: func() *Widget {
				widget := annotated("a", stored)
				widget.Finalizers = []string{ownFinalizer}
				return widget
			}(),
			old: annotated("a", stored), want: stored,
		},
		"changed by the mutator": {
			mutator: simple.OpinionatedMutator{
				Prefix: "example.com/",
				Mutator: &simple.Mutator{MutateFunc: func(
					_ context.Context, req *app.AdmissionRequest,
				) (*app.MutatingResponse, error) {
					req.Object.(*Widget).Spec.Title = "c"
					return nil, nil
				}},
			},
			object: annotated("a", nil), old: annotated("a", nil),
			want: map[string]string{"example.com/updatedBy": "eve", "example.com/updateTimestamp": "2000-01-01T00:00:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				req := &app.AdmissionRequest{Object: tc.object, UserInfo: authenticationv1.UserInfo{Username: "eve"}}
				if tc.old != nil {
					req.OldObject = tc.old
				}
				response, err := tc.mutator.Mutate(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, response.UpdatedObject.GetAnnotations()); diff != "" {
					t.Errorf("annotations (-want +got):\n%s", diff)
				}
			})
		})
	}
	denying := simple.OpinionatedMutator{Mutator: &simple.Mutator{MutateFunc: func(
		context.Context, *app.AdmissionRequest,
	) (*app.MutatingResponse, error) {
		return nil, errOnPurpose
	}}}
	_, err := denying.Mutate(t.Context(), &app.AdmissionRequest{Object: newWidget("it", "")})
	if !errors.Is(err, errOnPurpose) {
		t.Errorf("error = %v, want that of the mutator", err)
	}
}

// The annotations are written for each creation and each change by a user.
func ExampleOpinionatedMutator() {
	_ = simple.AppManagedKind{
		Kind:    widgetKind,
		Mutator: &simple.OpinionatedMutator{Mutator: &simple.Mutator{}},
	}
}
