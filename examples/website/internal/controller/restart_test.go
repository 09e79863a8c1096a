// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	websitev1 "trueup.dev/examples/website/api/v1"
)

// Everything changes while no controller runs. The next controller applies all changes.
func TestRestart_catchesUp(t *testing.T) {
	e := newEnv(t)
	stop := e.startController()
	paper := newTheme("paper", "h1 {}")
	shop, old := themed("shop", "paper"), newSite("old")
	shop.Spec.Languages = []websitev1.Language{{Code: "de"}, {Code: "fr"}}
	e.Add(paper, shop, old)
	e.ready("shop")
	e.ready("old")
	stop()

	change(e, paper, func(theme *corev1.ConfigMap) { theme.Data["style.css"] = "h2 {}" })
	change(e, shop, func(site *websitev1.Website) {
		site.Spec.Languages = site.Spec.Languages[1:]
		site.Spec.Domain = "store.example.com"
	})
	e.Must(e.Delete(t.Context(), e.configMap("shop-content")))
	e.Must(e.Delete(t.Context(), old)) // the finalizer keeps it
	e.Add(newSite("new"))
	e.Must(e.get(old, "old"))

	e.startController()
	e.waitForStyle("shop", "h2 {}", "shop-content", "shop-lang-fr")
	e.waitForDeletion(&corev1.ConfigMap{}, "shop-lang-de")
	e.waitForDeletion(&websitev1.Website{}, "old")
	e.ready("new")
	if _, err := e.records.Lookup(t.Context(), "store.example.com"); err != nil {
		t.Error(err)
	}
}

// A restart while sites become ready loses nothing.
func TestRestart_inTheMiddle(t *testing.T) {
	const sites = 8
	e := newEnv(t)
	stop := e.startController()
	for i := range sites {
		site := newSite(fmt.Sprintf("site-%d", i))
		site.Spec.Languages = []websitev1.Language{{Code: "de"}}
		e.Add(site)
	}
	e.Eventually(func() error {
		if e.records.published.Load() == 0 {
			return fmt.Errorf("no site has any child")
		}
		return nil
	})
	stop()
	e.startController()
	for i := range sites {
		e.ready(fmt.Sprintf("site-%d", i))
	}
}

// The server adds defaults to written objects. They are not drift: reconciles of a settled site write nothing.
func TestSettledSite_makesNoWrites(t *testing.T) {
	e := newEnv(t)
	e.startController()
	site := newSite("shop")
	site.Spec.Languages = []websitev1.Language{{Code: "de"}}
	e.Add(site)
	e.settle("shop")

	before := e.writes.Load()
	e.touch("shop", 5)
	if writes := e.writes.Load() - before; writes != 0 {
		t.Errorf("5 reconciles of a settled site made %d writes", writes)
	}
}

// settle waits until a site is ready, and the reconcile after that is complete.
func (e *env) settle(name string) {
	e.Helper()
	e.ready(name)
	e.touch(name, 2)
}

// touch triggers reconciles one after the other: each starts after the previous one is complete.
func (e *env) touch(name string, times int) {
	e.Helper()
	site := &websitev1.Website{}
	site.Namespace, site.Name = e.Namespace, name
	for range times {
		published := e.records.published.Load()
		change(e, site, func(site *websitev1.Website) {
			site.Annotations = map[string]string{"touched": fmt.Sprint(published)}
		})
		e.Eventually(func() error {
			if e.records.published.Load() == published {
				return fmt.Errorf("%s: no reconcile after a touch", name)
			}
			return nil
		})
	}
}
