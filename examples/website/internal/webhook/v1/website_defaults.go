// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

// Defaults sets defaults that depend on other fields. Constant defaults are in the schema.
//
// A SyncReconciler is not called for a site that is being deleted, so finalizers can be removed.
func Defaults() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name: "Defaults",
		Sync: func(_ context.Context, site *websitev1.Website) error {
			site.Spec.Domain = strings.ToLower(site.Spec.Domain)
			original := map[string]string{}
			for i := range site.Spec.Pages {
				page := &site.Spec.Pages[i]
				if page.Title == "" {
					page.Title = titleOf(page.Name)
				}
				original[page.Name] = page.Title
			}
			for _, language := range site.Spec.Languages {
				for i := range language.Pages {
					if page := &language.Pages[i]; page.Title == "" {
						page.Title = original[page.Name]
					}
				}
			}
			return nil
		},
	}
}

// titleOf converts "opening-hours" to "Opening hours".
func titleOf(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.ReplaceAll(name[size:], "-", " ")
}
