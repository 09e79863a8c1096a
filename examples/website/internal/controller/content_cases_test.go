// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/controller"
	"trueup.dev/examples/website/internal/manifest"
	"trueup.dev/examples/website/internal/render"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

func TestContentReconciler(t *testing.T) {
	themed := map[stash.Key]any{controller.ThemeStash.Key(): plainTheme()}
	rendered := map[stash.Key]any{controller.FilesStash.Key(): shopFiles}
	drifted := rtesting.With(content, func(cm *corev1.ConfigMap) {
		cm.Labels = map[string]string{"another": "else"}
		cm.Data["index.html"] = "defaced"
		cm.BinaryData = map[string][]byte{"malware": {1}}
	})
	repaired := rtesting.With(content, func(cm *corev1.ConfigMap) { cm.Labels["another"] = "else" })

	runSteps(t, subCases{
		"it is created": {
			Resource:            shop,
			GivenStashedValues:  themed,
			ExpectCreates:       []client.Object{content},
			ExpectEvents:        []rtesting.Event{created(content, "ConfigMap")},
			ExpectStashedValues: rendered,
		},
		"it is in sync": {
			Resource:            shop,
			GivenObjects:        []client.Object{content},
			GivenStashedValues:  themed,
			ExpectStashedValues: rendered,
		},
		"it is repaired, and keeps labels that other clients have set": {
			Resource:            shop,
			GivenObjects:        []client.Object{drifted},
			GivenStashedValues:  themed,
			ExpectUpdates:       []client.Object{repaired},
			ExpectEvents:        []rtesting.Event{updated(content, "ConfigMap")},
			ExpectStashedValues: rendered,
		},
		"ConfigMaps of languages are ignored": {
			Resource:            shop,
			GivenObjects:        []client.Object{content, owned(manifest.Content(shop, "de", nil))},
			GivenStashedValues:  themed,
			ExpectStashedValues: rendered,
		},
		"its name is in use": {
			Resource:           shop,
			GivenObjects:       []client.Object{foreign(content)},
			APIGivenObjects:    []client.Object{foreign(content)},
			GivenStashedValues: themed,
			ExpectTracks:       []rtesting.TrackRequest{rtesting.NewTrackRequest(content, shop, scheme())},
			ExpectCreates:      []client.Object{content},
			ExpectEvents: []rtesting.Event{
				notCreated("ConfigMap", "shop-content", `configmaps "shop-content" already exists`),
			},
			ExpectResource: rtesting.With(shop, condition(websitev1.ConditionContentReady, metav1.ConditionFalse,
				"AlreadyExists", `configmaps "shop-content" already exists`)),
			ShouldErr: true,
			Verify:    halted,
		},
		"it cannot be created": {
			Resource:           shop,
			GivenStashedValues: themed,
			WithReactors:       []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap")},
			ExpectCreates:      []client.Object{content},
			ExpectEvents: []rtesting.Event{
				notCreated("ConfigMap", "shop-content", `inducing failure for create ConfigMap`),
			},
			ShouldErr: true,
		},
		"the theme cannot render a page": {
			Resource: shop,
			GivenStashedValues: map[stash.Key]any{
				controller.ThemeStash.Key(): must(render.ParseTheme(map[string]string{render.LayoutKey: "{{.Nothing}}"})),
			},
			ExpectResource: rtesting.With(shop, condition(websitev1.ConditionContentReady, metav1.ConditionFalse, "ThemeBroken",
				`page index: template: layout.html:1:2: executing "layout.html" at <.Nothing>: can't evaluate field Nothing in type render.view`)),
			ShouldErr: true,
			Verify:    halted,
		},
		"it is deleted with the site": {
			Resource:      leavingShop,
			GivenObjects:  []client.Object{content},
			ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(content, scheme())},
			ExpectEvents:  []rtesting.Event{deleted(content, "ConfigMap")},
		},
	}, func(*testing.T) subReconcile { return controller.ContentReconciler() })
}

func TestLanguagesReconciler(t *testing.T) {
	german := websitev1.Language{Code: "de", Pages: []websitev1.Page{{Name: "index", Title: "Willkommen"}}}
	french := websitev1.Language{Code: "fr"}
	bilingual := rtesting.With(shop, func(site *websitev1.Website) {
		site.Spec.Languages = []websitev1.Language{german, french}
	})
	translated := func(language websitev1.Language) *corev1.ConfigMap {
		translation := render.Translate(controller.Pages(shop.Spec.Pages), controller.Pages(language.Pages))
		files := must(plainTheme().Site(shop.Spec.Domain, language.Code, translation))
		return owned(manifest.Content(shop, language.Code, files))
	}
	de, fr := translated(german), translated(french)
	given := func() map[stash.Key]any {
		return map[stash.Key]any{
			controller.ThemeStash.Key(): plainTheme(), controller.FilesStash.Key(): manifest.Files{"": content.Data},
		}
	}
	rendered := condition(websitev1.ConditionContentReady, metav1.ConditionTrue, "Rendered", "")
	speaks := func(languages ...string) func(*websitev1.Website) {
		return func(site *websitev1.Website) { site.Status.Languages = languages }
	}

	runSteps(t, subCases{
		"none": {
			Resource:            shop,
			GivenStashedValues:  given(),
			ExpectResource:      rtesting.With(shop, rendered),
			ExpectStashedValues: map[stash.Key]any{controller.FilesStash.Key(): shopFiles},
		},
		"they are created, in the order of the spec": {
			Resource:           bilingual,
			GivenStashedValues: given(),
			ExpectCreates:      []client.Object{de, fr},
			ExpectEvents:       []rtesting.Event{created(de, "ConfigMap"), created(fr, "ConfigMap")},
			ExpectResource:     rtesting.With(bilingual, rendered, speaks("de", "fr")),
			ExpectStashedValues: map[stash.Key]any{
				controller.FilesStash.Key(): manifest.Files{"": content.Data, "de": de.Data, "fr": fr.Data},
			},
		},
		"a removed language is deleted": {
			Resource:            rtesting.With(shop, speaks("de")),
			GivenObjects:        []client.Object{content, de},
			GivenStashedValues:  given(),
			ExpectDeletes:       []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(de, scheme())},
			ExpectEvents:        []rtesting.Event{deleted(de, "ConfigMap")},
			ExpectResource:      rtesting.With(shop, rendered),
			ExpectStashedValues: map[stash.Key]any{controller.FilesStash.Key(): shopFiles},
		},
		"the name of one is in use": {
			Resource:           bilingual,
			GivenObjects:       []client.Object{foreign(de), fr},
			APIGivenObjects:    []client.Object{foreign(de), fr},
			GivenStashedValues: given(),
			ExpectTracks:       []rtesting.TrackRequest{rtesting.NewTrackRequest(de, shop, scheme())},
			ExpectCreates:      []client.Object{de},
			ExpectEvents: []rtesting.Event{
				notCreated("ConfigMap", "shop-lang-de", `configmaps "shop-lang-de" already exists`),
			},
			ExpectResource: rtesting.With(bilingual, condition(websitev1.ConditionContentReady, metav1.ConditionFalse,
				"AlreadyExists", `configmaps "shop-lang-de" already exists`)),
			ShouldErr: true,
			Verify:    halted,
		},
		"the theme cannot render a page": {
			Resource: bilingual,
			GivenStashedValues: map[stash.Key]any{
				controller.ThemeStash.Key(): must(render.ParseTheme(map[string]string{render.LayoutKey: "{{.Nothing}}"})),
			},
			ExpectResource: rtesting.With(bilingual, condition(websitev1.ConditionContentReady, metav1.ConditionFalse,
				"ThemeBroken",
				`page index: template: layout.html:1:2: executing "layout.html" at <.Nothing>: can't evaluate field Nothing in type render.view`)),
			ShouldErr: true,
			Verify:    halted,
		},
		"they are deleted with the site": {
			Resource: rtesting.With(leavingShop, func(site *websitev1.Website) {
				site.Spec.Languages = []websitev1.Language{german}
			}),
			GivenObjects:  []client.Object{de},
			ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(de, scheme())},
			ExpectEvents:  []rtesting.Event{deleted(de, "ConfigMap")},
		},
	}, func(*testing.T) subReconcile { return controller.LanguagesReconciler() })
}
