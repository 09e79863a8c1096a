// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/internal/objects/manifests"
)

var rules = manifests.Rules{
	Kinds: []schema.GroupVersionKind{
		websitev1.GroupVersion.WithKind("Website"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("Namespace"),
	},
	Namespace: corev1.NamespaceDefault,
}

// load reads the objects to apply, before anything is started.
func (d *demo) load(o Options) error {
	var err error
	switch {
	case o.Replicas > 0:
		d.documents = manyWebsites(websitesPerReplica * o.Replicas)
	case len(o.Files) > 0:
		d.documents, err = manifests.Load(o.Files, rules)
	default:
		d.documents, err = manifests.LoadFS(website.Samples(), rules)
	}
	for _, document := range d.documents {
		if document.Object.GetKind() == "Website" {
			d.sites = append(d.sites, client.ObjectKeyFromObject(document.Object))
		}
	}
	if err == nil && len(d.sites) == 0 {
		err = fmt.Errorf("no Website in %s", strings.Join(o.Files, ", "))
	}
	if err != nil {
		return &InputError{err}
	}
	return nil
}

// namespaces returns the namespaces of the objects, each once.
func (d *demo) namespaces() []string {
	var names []string
	for _, document := range d.documents {
		if name := document.Object.GetNamespace(); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// label returns the name of a site, with its namespace if the sites are in several namespaces.
func (d *demo) label(key types.NamespacedName) string {
	if slices.ContainsFunc(d.sites, func(other types.NamespacedName) bool { return other.Namespace != key.Namespace }) {
		return key.String()
	}
	return key.Name
}

// count formats a number of objects.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
