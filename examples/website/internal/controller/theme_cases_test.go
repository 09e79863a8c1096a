// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/controller"
	"trueup.dev/examples/website/internal/render"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

func TestThemeReconciler(t *testing.T) {
	themed := rtesting.With(shop, func(site *websitev1.Website) {
		site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
	})
	paper := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cases", Name: "paper"},
		Data:       map[string]string{render.LayoutKey: "<h1>{{.Title}}</h1>", render.StyleKey: "body {}"},
	}
	follows := []rtesting.TrackRequest{rtesting.NewTrackRequest(paper, shop, scheme())}

	runSteps(t, subCases{
		"without a reference, the built-in theme is used": {
			Resource:            shop,
			ExpectStashedValues: map[stash.Key]any{controller.ThemeStash.Key(): plainTheme()},
			VerifyStashedValue:  sameTheme,
		},
		"the theme is read and tracked": {
			Resource:            themed,
			GivenObjects:        []client.Object{paper},
			ExpectTracks:        follows,
			ExpectStashedValues: map[stash.Key]any{controller.ThemeStash.Key(): must(render.ParseTheme(paper.Data))},
			VerifyStashedValue:  sameTheme,
		},
		"a missing theme is tracked, too": {
			Resource:     themed,
			ExpectTracks: follows,
			ExpectResource: rtesting.With(themed,
				condition(
					websitev1.ConditionContentReady, metav1.ConditionFalse, "ThemeNotFound", `ConfigMap "paper" does not exist`,
				)),
			ShouldErr: true,
			Verify:    halted,
		},
		"a broken theme": {
			Resource:     themed,
			GivenObjects: []client.Object{rtesting.With(paper, func(cm *corev1.ConfigMap) { cm.Data[render.LayoutKey] = "{{" })},
			ExpectTracks: follows,
			ExpectResource: rtesting.With(themed, condition(websitev1.ConditionContentReady, metav1.ConditionFalse,
				"ThemeBroken",
				"the layout is broken: template: layout.html:1: unclosed action")),
			ShouldErr: true,
			Verify:    halted,
		},
		"the theme cannot be read": {
			Resource:     themed,
			WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap")},
			ExpectTracks: follows,
			ShouldErr:    true,
		},
		"a site that is being deleted needs no theme": {Resource: rtesting.With(leavingShop, func(site *websitev1.Website) {
			site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
		})},
	}, func(*testing.T) subReconcile { return controller.ThemeReconciler() })
}

// sameTheme compares themes by a page that they render, because their fields are not exported.
func sameTheme(t *testing.T, key stash.Key, expected, actual any) {
	t.Helper()
	look := func(theme any) map[string]string {
		return must(
			theme.(*render.Theme).Site("shop.example.com", "", []render.Page{
				{Name: "index", Title: "Welcome", Body: "Come in."},
			}),
		)
	}
	if diff := cmp.Diff(look(expected), look(actual)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", key, diff)
	}
}
