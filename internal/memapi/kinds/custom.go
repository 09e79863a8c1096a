// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newUndefined returns a custom kind without a definition, from its Go type.
func newUndefined(gvk schema.GroupVersionKind, t reflect.Type) *Kind {
	_, status := t.FieldByName("Status")
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	k := &Kind{
		GroupVersionKind: gvk, Plural: plural.Resource, Singular: singular.Resource, Namespaced: true, Custom: true,
		Status: status, Generations: true,
	}
	k.rules = &customRules{kind: k}
	return k
}

// newDefined returns the kinds for all versions of a definition, also for those that are not served.
func newDefined(crd *apiextensionsv1.CustomResourceDefinition) ([]*Kind, error) {
	crd = crd.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	var kinds []*Kind
	var errs []error
	for _, v := range crd.Spec.Versions {
		names := crd.Spec.Names
		k := &Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: names.Kind},
			Plural:           names.Plural, Singular: names.Singular,
			Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, Custom: true, Generations: true, unserved: !v.Served,
			ShortNames: names.ShortNames, Categories: names.Categories, Columns: v.AdditionalPrinterColumns,
		}
		if sub := v.Subresources; sub != nil {
			k.Status = sub.Status != nil
			if s := sub.Scale; s != nil {
				k.Scale = &Scale{SpecReplicas: s.SpecReplicasPath, StatusReplicas: s.StatusReplicasPath}
				if s.LabelSelectorPath != nil {
					k.Scale.Selector = *s.LabelSelectorPath
				}
			}
		}
		for _, f := range v.SelectableFields {
			k.Selectable = append(k.Selectable, strings.TrimPrefix(f.JSONPath, "."))
		}
		compiled, err := newSchema(&v, k.Scale)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		k.rules = &schemaRules{customRules: customRules{kind: k}, schema: compiled}
		kinds = append(kinds, k)
	}
	if len(errs) > 0 || len(kinds) == 0 {
		return nil, errors.Join(errs...)
	}
	versions := versionsOf(crd, kinds)
	for _, k := range kinds {
		k.Versions = versions
	}
	return kinds, nil
}

// customRules are the rules of a custom resource.
type customRules struct {
	kind *Kind
}

func (r *customRules) defaults(client.Object) error {
	return nil
}

func (r *customRules) create(client.Object) {}

// update compares all fields except metadata, so without a status subresource, the status is desired state.
func (r *customRules) update(obj, old client.Object) bool {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return !r.kind.layout.equalOthers(obj, old) || !r.kind.Status && !r.kind.layout.equalStatus(obj, old)
	}
	return !equality.Semantic.DeepEqual(withoutMetadata(u), withoutMetadata(old.(*unstructured.Unstructured)))
}

func withoutMetadata(u *unstructured.Unstructured) map[string]any {
	content := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		if key != "metadata" {
			content[key] = value
		}
	}
	return content
}

func (r *customRules) updateStatus(obj, old client.Object) {
	managed := obj.GetManagedFields()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		status, found := u.Object["status"]
		*u = *old.(*unstructured.Unstructured).DeepCopy()
		if delete(u.Object, "status"); found {
			u.Object["status"] = status
		}
	} else {
		r.kind.layout.setOthers(obj, old)
		r.kind.layout.setMeta(obj, old)
	}
	obj.SetManagedFields(managed)
}

// ValidateType returns the problems of a custom object of another kind or version.
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go: ValidateTypeMeta
func (k *Kind) ValidateType(found schema.GroupVersionKind) (errs field.ErrorList) {
	if found.Kind != k.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), found.Kind, "must be "+k.Kind))
	}
	if version := k.GroupVersion().String(); found.GroupVersion().String() != version {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), found.GroupVersion().String(), "must be "+version))
	}
	return errs
}

// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go: Validate
func (r *customRules) validate(obj client.Object) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(obj, r.kind.Namespaced, validation.NameIsDNSSubdomain, metaPath)
}

// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go: ValidateUpdate
func (r *customRules) validateUpdate(obj, old client.Object, _ bool) field.ErrorList {
	return r.kind.layout.validateMetaUpdate(obj, old)
}
