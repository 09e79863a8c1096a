// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Versions are the versions of a custom kind that its definition has. An object is stored once, and converted to the
// version of each request.
type Versions struct {
	// All are the versions in the order of the definition, also those that are not served.
	All []*Kind
	// Storage is the version in which objects are stored. It need not be served.
	Storage *Kind
	// Webhook is set if a webhook converts objects. Otherwise a conversion changes only apiVersion, and removes the fields
	// that the other version does not have.
	Webhook bool
}

// Of returns a version, or nil if the definition does not have it.
func (v *Versions) Of(version string) *Kind {
	for _, k := range v.All {
		if k.Version == version {
			return k
		}
	}
	return nil
}

// versionsOf returns what the versions of a definition share.
func versionsOf(crd *apiextensionsv1.CustomResourceDefinition, all []*Kind) *Versions {
	v := &Versions{All: all}
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			v.Storage = v.Of(crd.Spec.Versions[i].Name)
		}
	}
	if v.Storage == nil {
		v.Storage = all[0]
	}
	c := crd.Spec.Conversion
	v.Webhook = c != nil && c.Strategy == apiextensionsv1.WebhookConverter
	return v
}

// Converter returns an object of a kind in another version. It does not change the object.
type Converter func(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error)

// Several reports whether there is more than one version.
func (v *Versions) Several() bool { return len(v.All) > 1 }

// Converted removes the fields that a version does not have from content that was converted to it. It sets no defaults:
// a server sets the defaults of the version of a request, and of the version in which an object is stored.
func (k *Kind) Converted(content map[string]any) error {
	if r, ok := k.rules.(*schemaRules); ok {
		return r.schema.coerce(content)
	}
	return nil
}
