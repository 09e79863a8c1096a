// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/cmd/trueup/internal/screen"
	websitev1 "trueup.dev/examples/website/api/v1"
)

const styleKey = "style.css"

// changeTheme changes the theme that most sites use, and shows that these sites follow and that the others do not
// change.
func (d *demo) changeTheme(ctx context.Context) error {
	before, popular, followers, err := d.popularTheme(ctx)
	if err != nil {
		return err
	}
	if popular.Name == "" {
		d.Step("Change a theme")
		d.Skipped("no Website has a themeRef; all use the built-in theme")
		return nil
	}
	d.Step("Change the theme %s", popular.Name)
	var theme corev1.ConfigMap
	if err := d.client.Get(ctx, popular, &theme); err != nil {
		return err
	}
	if theme.Immutable != nil && *theme.Immutable {
		d.Skipped("the ConfigMap %s is immutable", popular.Name)
		return nil
	}

	// A comment does not change the user's pages, and every rendered file contains it.
	mark := fmt.Sprintf("/* repainted by trueup demo at %s */", time.Now().Format(time.RFC3339Nano))
	original := theme.DeepCopy()
	if theme.Data == nil {
		theme.Data = map[string]string{}
	}
	theme.Data[styleKey] += "\n" + mark + "\n"
	if err := d.client.Patch(ctx, &theme, client.MergeFrom(original), fieldOwner); err != nil {
		return err
	}
	d.Progress("added a line to %[2]s of %[1]s; no other object is changed", popular.Name, styleKey)

	width, shown := d.widest(), map[types.NamespacedName]bool{}
	err = d.observer.await(ctx, d.timeout, func(ctx context.Context) (string, error) {
		var waiting []string
		for _, key := range followers {
			v, err := d.view(ctx, d.observer, key)
			if err != nil {
				return "", err
			}
			pending := repainted(before[key], v, mark)
			if pending != "" {
				waiting = append(waiting, fmt.Sprintf("Website %s does not follow its theme: %s", d.label(key), pending))
			} else if !shown[key] {
				shown[key] = true
				d.Done(
					"%-*s  %s have the new style, %s are rolled out", width, d.label(key), count(len(v.configMaps), "ConfigMap"),
					v.servers(),
				)
			}
		}
		return strings.Join(waiting, "; "), nil
	})
	if err != nil {
		return err
	}
	return d.unmoved(ctx, before, followers)
}

// popularTheme returns the sites as they are now, the theme that most of them use, and the sites that use it.
func (d *demo) popularTheme(ctx context.Context) (
	before map[types.NamespacedName]*view, popular types.NamespacedName, followers []types.NamespacedName, err error,
) {
	before = map[types.NamespacedName]*view{}
	byTheme := map[types.NamespacedName][]types.NamespacedName{}
	for _, key := range d.sites {
		v, err := d.view(ctx, d.client, key)
		if err != nil {
			return nil, popular, nil, err
		}
		if v == nil || v.pending() != "" {
			return nil, popular, nil, fmt.Errorf("the Website %s is no longer ready", d.label(key))
		}
		before[key] = v
		if v.site.Spec.ThemeRef != nil {
			theme := types.NamespacedName{Namespace: key.Namespace, Name: v.site.Spec.ThemeRef.Name}
			byTheme[theme] = append(byTheme[theme], key)
			if len(byTheme[theme]) > len(byTheme[popular]) {
				popular = theme
			}
		}
	}
	return before, popular, byTheme[popular], nil
}

// repainted describes what is missing until all children of a site have the new theme.
func repainted(before, now *view, mark string) string {
	if now == nil {
		return "it no longer exists"
	}
	if pending := now.pending(); pending != "" {
		return pending
	}
	for _, configMap := range now.configMaps {
		if !strings.Contains(configMap.Data[styleKey], mark) {
			return fmt.Sprintf("ConfigMap %s still has the old style", configMap.Name)
		}
	}
	if contentHash(before) == contentHash(now) {
		return "the web servers still have the old content"
	}
	return ""
}

func contentHash(v *view) string {
	return v.deployment.Spec.Template.Annotations[websitev1.AnnotationContentHash]
}

// unmoved checks that sites with another theme have not changed.
func (d *demo) unmoved(
	ctx context.Context, before map[types.NamespacedName]*view, followers []types.NamespacedName,
) error {
	var still []string
	for _, key := range d.sites {
		if slices.Contains(followers, key) {
			continue
		}
		now, err := d.view(ctx, d.client, key)
		if err != nil {
			return err
		}
		if now == nil || contentHash(now) != contentHash(before[key]) || now.deployment.UID != before[key].deployment.UID {
			return fmt.Errorf("the Website %s has another theme, but changed", d.label(key))
		}
		still = append(still, d.label(key))
	}
	switch len(still) {
	case 0:
	case 1:
		d.Done("%s", d.Paint(screen.Faint, still[0]+" has another theme and is unchanged"))
	default:
		d.Done("%s", d.Paint(screen.Faint, names(still)+" have other themes and are unchanged"))
	}
	return nil
}
