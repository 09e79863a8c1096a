// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"trueup.dev/internal/memapi/kinds"
)

// converterFor returns the converter that merges objects of a kind.
func converterFor(k *kinds.Kind) (managedfields.TypeConverter, error) {
	switch structural := k.Schema(); {
	case structural != nil:
		converter, err := managedfields.NewTypeConverter(modelsOf(k, structural), false)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", k.GroupVersionKind, err)
		}
		return converter, nil
	case clientgoscheme.Scheme.Recognizes(k.GroupVersionKind):
		return builtinConverter(), nil
	}
	return managedfields.NewDeducedTypeConverter(), nil
}

// LoadSchemas reads the schemas of all built-in kinds, which takes about 0.1 s. Otherwise, the first use does so.
func LoadSchemas() { builtinConverter() }

// builtinConverter is expensive to create and shared by all appliers.
var builtinConverter = sync.OnceValue(func() managedfields.TypeConverter {
	return clientgoapply.NewTypeConverter(clientgoscheme.Scheme)
})

const (
	metaPackage   = "io.k8s.apimachinery.pkg.apis.meta.v1."
	reference     = "#/components/schemas/"
	objectMetaRef = reference + metaPackage + "ObjectMeta"
)

// metaModels are the models of metadata, to which all other models refer.
var metaModels = sync.OnceValue(func() map[string]*spec.Schema {
	found := map[string]*spec.Schema{}
	for name, definition := range generatedopenapi.GetOpenAPIDefinitions(func(path string) spec.Ref {
		return spec.MustCreateRef(reference + path)
	}) {
		if strings.HasPrefix(name, metaPackage) {
			found[name] = new(definition.Schema)
		}
	}
	return found
})

// modelsOf returns the models of all versions of a custom resource.
func modelsOf(k *kinds.Kind, structural *structuralschema.Structural) map[string]*spec.Schema {
	all := models(k, structural)
	if k.Versions != nil {
		for _, other := range k.Versions.All {
			maps.Copy(all, models(other, other.Schema()))
		}
	}
	return all
}

// models returns the model of a version of a custom resource, and the models it refers to.
func models(k *kinds.Kind, structural *structuralschema.Structural) map[string]*spec.Schema {
	model := structural.DeepCopy().Unfold().ToKubeOpenAPI() // Unfold changes the schema, which is shared
	embed(model)
	addObject(model)
	model.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind},
	})
	all := map[string]*spec.Schema{k.Group + "." + k.Version + "." + k.Kind: model}
	for name, m := range metaModels() {
		all[name] = m
	}
	return all
}

// addObject adds the fields of all objects to a model.
func addObject(model *spec.Schema) {
	model.SetProperty("apiVersion", *spec.StringProperty())
	model.SetProperty("kind", *spec.StringProperty())
	model.SetProperty("metadata", *spec.RefSchema(objectMetaRef))
}

// embed adds these fields to all objects within a model.
func embed(model *spec.Schema) {
	if model == nil {
		return
	}
	for name, property := range model.Properties {
		embed(&property)
		model.Properties[name] = property
	}
	if model.Items != nil {
		embed(model.Items.Schema)
	}
	if model.AdditionalProperties != nil {
		embed(model.AdditionalProperties.Schema)
	}
	if embedded, ok := model.Extensions.GetBool("x-kubernetes-embedded-resource"); ok && embedded {
		addObject(model)
	}
}

// compareEntries is the order in which a server lists managed fields.
func compareEntries(a, b metav1.ManagedFieldsEntry) int {
	return cmp.Or(
		cmp.Compare(a.Operation, b.Operation), cmp.Compare(seconds(a.Time), seconds(b.Time)),
		cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource),
	)
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}
