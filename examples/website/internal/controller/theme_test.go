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

// wears waits until the pages of a site, in all languages, have a style, and the web servers have rolled over to them.
func (e *env) wears(site, style string, configMaps ...string) {
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

func TestTheme_isFollowed(t *testing.T) {
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
	e.wears("shop", "h1 { color: teal; }", "shop-content", "shop-lang-de")
	e.wears("blog", "h1 { color: teal; }", "blog-content")

	// ready may have been true still, of the old content: what counts is that the servers roll over.
	e.Eventually(func() error {
		after := e.deployment("shop")
		was := before.Spec.Template.Annotations[websitev1.AnnotationContentHash]
		is := after.Spec.Template.Annotations[websitev1.AnnotationContentHash]
		if was == is || after.Status.ObservedGeneration != after.Generation || after.Status.UpdatedReplicas != 1 {
			return fmt.Errorf("the web servers have not rolled over: content hash %s, was %s, status %+v", is, was, after.Status)
		}
		return nil
	})
	if after := e.deployment("cinema"); after.Generation != other.Generation {
		t.Error("a site with another theme has rolled over, too")
	}
}

func TestTheme_isSwapped(t *testing.T) {
	e := newEnv(t)
	e.startController()
	site := themed("shop", "paper")
	e.Add(newTheme("paper", "h1 {}"), newTheme("night", "h2 {}"), site)
	e.wears("shop", "h1 {}", "shop-content")
	change(e, site, func(site *websitev1.Website) { site.Spec.ThemeRef.Name = "night" })
	e.wears("shop", "h2 {}", "shop-content")
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
		ready.Message != `there is no ConfigMap "paper"` {
		t.Errorf("Ready does not say what is missing: %+v", ready)
	}
	e.Add(newTheme("paper", "h1 {}"))
	e.wears("shop", "h1 {}", "shop-content")
}

// A site whose theme is lost or broken says so, and goes on serving what it has.
func TestTheme_isLostAndBroken(t *testing.T) {
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
			return fmt.Errorf("the condition does not name the mistake: %s", message)
		}
		return nil
	})
	if now := e.deployment("shop"); now.UID != served.UID || now.Generation != served.Generation ||
		now.Status.AvailableReplicas != 1 {
		t.Errorf(
			"the web servers were touched: generation %d, was %d; status %+v", now.Generation, served.Generation, now.Status,
		)
	}

	change(e, paper, func(theme *corev1.ConfigMap) { theme.Data["layout.html"] = "{{.Title}}" })
	e.wears("shop", "h2 {}", "shop-content")
}
