// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bannerv1 "trueup.dev/docs/internal/banner/v1"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

// region testing-text-cases
var TextCases = rtesting.SubReconcilerTests[*bannerv1.Banner]{
	"finds the text": {
		Resource:            sale,
		GivenObjects:        []client.Object{greeting},
		ExpectTracks:        tracksGreeting,
		ExpectStashedValues: map[stash.Key]any{textStasher.Key(): "Bread & butter"},
	},
	"has no text": {
		Resource:     sale,
		Now:          today,
		ExpectTracks: tracksGreeting,
		ExpectResource: rtesting.With(sale, func(banner *bannerv1.Banner) {
			banner.Status.MarkNotShown(at, "NoText", `ConfigMap "greeting" has no text`)
		}),
	},
	"cannot read the text": {
		Resource:     sale,
		GivenObjects: []client.Object{greeting},
		WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap")},
		ExpectTracks: tracksGreeting,
		ShouldErr:    true,
	},
}

// endregion

// region testing-wiring-cases
var WiringCases = rtesting.SubReconcilerTests[*bannerv1.Banner]{
	"watches the text": {
		Resource:     sale,
		GivenObjects: []client.Object{greeting},
		ExpectTracks: tracksGreeting,
		ExpectWiring: &rtesting.Wiring{Tracks: []rtesting.Watch{{Object: &corev1.ConfigMap{}}}},
	},
}

// endregion

// region testing-lapse-cases
var LapseCases = rtesting.SubReconcilerTests[*bannerv1.Banner]{
	"has an hour left": {
		Resource:            sale,
		Now:                 today.Add(23 * time.Hour),
		GivenStashedValues:  map[stash.Key]any{textStasher.Key(): "Bread & butter"},
		ExpectStashedValues: map[stash.Key]any{textStasher.Key(): "Bread & butter"},
		ExpectedResult:      reconcilers.Result{RequeueAfter: time.Hour},
	},
	"lapses": {
		Resource:            sale,
		Now:                 today.Add(24 * time.Hour),
		GivenStashedValues:  map[stash.Key]any{textStasher.Key(): "Bread & butter"},
		ExpectStashedValues: map[stash.Key]any{textStasher.Key(): nil},
		ExpectResource: rtesting.With(sale, func(banner *bannerv1.Banner) {
			banner.Status.MarkNotShown(at, "Lapsed", "")
		}),
	},
}

// endregion

// region testing-page-cases
var foreignPage = rtesting.With(page, func(page *corev1.ConfigMap) { page.OwnerReferences = nil })

var PageCases = rtesting.SubReconcilerTests[*bannerv1.Banner]{
	"writes the page": {
		Resource:           sale,
		Now:                today,
		GivenStashedValues: map[stash.Key]any{textStasher.Key(): "Bread & butter"},
		ExpectCreates:      []client.Object{page},
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(sale, scheme, corev1.EventTypeNormal, "Created", `Created ConfigMap "sale-page"`),
		},
		ExpectResource: shown,
	},
	"repairs the page": {
		Resource:           shown,
		GivenStashedValues: map[stash.Key]any{textStasher.Key(): "Bread & butter"},
		GivenObjects:       []client.Object{rtesting.With(page, func(page *corev1.ConfigMap) { page.Data = nil })},
		ExpectUpdates:      []client.Object{page},
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(sale, scheme, corev1.EventTypeNormal, "Updated", `Updated ConfigMap "sale-page"`),
		},
	},
	"removes the page": {
		Resource:      shown,
		GivenObjects:  []client.Object{page},
		ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(page, scheme)},
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(sale, scheme, corev1.EventTypeNormal, "Deleted", `Deleted ConfigMap "sale-page"`),
		},
	},
	"cannot write the page": {
		Resource:           sale,
		GivenStashedValues: map[stash.Key]any{textStasher.Key(): "Bread & butter"},
		WithReactors:       []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap")},
		ShouldErr:          true,
		ExpectCreates:      []client.Object{page}, // attempted, but failed
		ExpectEvents: []rtesting.Event{rtesting.NewEvent(sale, scheme, corev1.EventTypeWarning, "CreationFailed",
			`Failed to create ConfigMap "sale-page": inducing failure for create ConfigMap`)},
	},
	"the name is taken": {
		Resource:           sale,
		Now:                today,
		GivenStashedValues: map[stash.Key]any{textStasher.Key(): "Bread & butter"},
		GivenObjects:       []client.Object{foreignPage},
		APIGivenObjects:    []client.Object{foreignPage}, // the reconciler also reads from the API server
		ExpectTracks:       []rtesting.TrackRequest{rtesting.NewTrackRequest(foreignPage, sale, scheme)},
		ExpectCreates:      []client.Object{page},
		ExpectEvents: []rtesting.Event{rtesting.NewEvent(sale, scheme, corev1.EventTypeWarning, "CreationFailed",
			`Failed to create ConfigMap "sale-page": configmaps "sale-page" already exists`)},
		ExpectResource: rtesting.With(sale, func(banner *bannerv1.Banner) {
			banner.Status.MarkNotShown(at, "PageFailed", `configmaps "sale-page" already exists`)
		}),
	},
}

// endregion
