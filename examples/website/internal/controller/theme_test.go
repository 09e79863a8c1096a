// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	websitev1 "trueup.dev/examples/website/api/v1"
)

// waitForStyle waits until the pages of a site, in all languages, have a style, and the web servers have rolled over.
func (e *env) waitForStyle(site, style string, configMaps ...string) {
	e.Helper()
	e.Eventually(func() error {
		for _, name := range configMaps {
			var configMap corev1.ConfigMap
			if err := e.get(&configMap, name); err != nil {
				return err
			}
			if configMap.Data["style.css"] != style {
				return fmt.Errorf("the style of %s is %q, want %q", name, configMap.Data["style.css"], style)
			}
		}
		return nil
	})
	e.ready(site)
}

func themed(name, theme string) *websitev1.Website {
	site := newSite(name)
	site.Spec.ThemeRef = &websitev1.ThemeReference{Name: theme}
	return site
}

func TestTheme_isTracked(t *testing.T) {
	e := newEnv(t)
	e.startController()
	paper := newTheme("paper", "h1 {}")
	shop := themed("shop", "paper")
	shop.Spec.Languages = []websitev1.Language{{Code: "de"}}
	e.Add(paper, newTheme("night", "h2 {}"), shop, themed("blog", "paper"), themed("cinema", "night"))
	for _, name := range []string{"shop", "blog", "cinema"} {
		e.ready(name)
	}
	before := e.deployment("shop")
	other := e.deployment("cinema")

	change(e, paper, func(theme *corev1.ConfigMap) { theme.Data["style.css"] = "h1 { color: teal; }" })
	e.waitForStyle("shop", "h1 { color: teal; }", "shop-content", "shop-lang-de")
	e.waitForStyle("blog", "h1 { color: teal; }", "blog-content")

	// The site may still have been ready with the old content, so check that the servers roll over.
	e.Eventually(func() error {
		after := e.deployment("shop")
		was := before.Spec.Template.Annotations[websitev1.AnnotationContentHash]
		is := after.Spec.Template.Annotations[websitev1.AnnotationContentHash]
		if was == is || after.Status.ObservedGeneration != after.Generation || after.Status.UpdatedReplicas != 1 {
			return fmt.Errorf("the web servers did not roll over: content hash %s, was %s, status %+v", is, was, after.Status)
		}
		return nil
	})
	if after := e.deployment("cinema"); after.Generation != other.Generation {
		t.Error("a site with another theme rolled over, too")
	}
}

func TestTheme_isReplaced(t *testing.T) {
	e := newEnv(t)
	e.startController()
	site := themed("shop", "paper")
	e.Add(newTheme("paper", "h1 {}"), newTheme("night", "h2 {}"), site)
	e.waitForStyle("shop", "h1 {}", "shop-content")
	change(e, site, func(site *websitev1.Website) { site.Spec.ThemeRef.Name = "night" })
	e.waitForStyle("shop", "h2 {}", "shop-content")
	change(e, site, func(site *websitev1.Website) { site.Spec.ThemeRef = nil })
	e.Eventually(func() error {
		if index := e.configMap("shop-content").Data["index.html"]; !strings.Contains(index, "<!doctype html>") {
			return fmt.Errorf("the page is not rendered with the built-in theme: %s", index)
		}
		return nil
	})
}

func TestTheme_isWaitedFor(t *testing.T) {
	e := newEnv(t)
	e.startController()
	e.Add(themed("shop", "paper"))
	site := e.condition("shop", websitev1.ConditionContentReady, metav1.ConditionFalse, "ThemeNotFound")
	if ready := site.Status.GetCondition(websitev1.ConditionReady); ready.Status != metav1.ConditionFalse ||
		ready.Message != `ConfigMap "paper" does not exist` {
		t.Errorf("Ready does not name the missing ConfigMap: %+v", ready)
	}
	e.Add(newTheme("paper", "h1 {}"))
	e.waitForStyle("shop", "h1 {}", "shop-content")
}

// A site whose theme is deleted or broken reports it, and keeps serving its content.
func TestTheme_isDeletedAndBroken(t *testing.T) {
	e := newEnv(t)
	e.startController()
	paper := newTheme("paper", "h1 {}")
	e.Add(paper, themed("shop", "paper"))
	e.ready("shop")
	served := e.deployment("shop")

	e.Must(e.Delete(t.Context(), paper))
	e.condition("shop", websitev1.ConditionContentReady, metav1.ConditionFalse, "ThemeNotFound")

	paper = newTheme("paper", "h2 {}")
	paper.Data["layout.html"] = "{{.Title"
	e.Add(paper)
	e.condition("shop", websitev1.ConditionContentReady, metav1.ConditionFalse, "ThemeBroken")

	change(e, paper, func(theme *corev1.ConfigMap) { theme.Data["layout.html"] = "{{.Price}}" })
	e.Eventually(func() error {
		message := e.condition("shop", websitev1.ConditionContentReady, metav1.ConditionFalse, "ThemeBroken").
			Status.GetCondition(websitev1.ConditionContentReady).Message
		if !strings.Contains(message, "can't evaluate field Price") {
			return fmt.Errorf("the condition does not contain the error: %s", message)
		}
		return nil
	})
	if now := e.deployment("shop"); now.UID != served.UID || now.Generation != served.Generation ||
		now.Status.AvailableReplicas != 1 {
		t.Errorf(
			"the Deployment was changed: generation %d, was %d; status %+v", now.Generation, served.Generation, now.Status,
		)
	}

	change(e, paper, func(theme *corev1.ConfigMap) { theme.Data["layout.html"] = "{{.Title}}" })
	e.waitForStyle("shop", "h2 {}", "shop-content")
}
