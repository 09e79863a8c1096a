// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// crdSchema is the compiled schema of a version of a custom resource. It is safe for concurrent use.
type crdSchema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	status     validation.SchemaValidator // nil without a status subresource, or if the schema has no status
	rules      *cel.Validator             // nil if the schema has none
	scale      *Scale
}

// newSchema compiles the schema of a version, which must not be nil.
func newSchema(version *apiextensionsv1.CustomResourceDefinitionVersion, scale *Scale) (*crdSchema, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("version %s: schema.openAPIV3Schema is required", version.Name)
	}
	var internal apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		version.Schema, &internal, nil,
	); err != nil {
		return nil, fmt.Errorf("version %s: %w", version.Name, err)
	}
	s := &crdSchema{scale: scale}
	var err error
	if s.structural, err = structuralschema.NewStructural(internal.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("version %s: %w", version.Name, err)
	}
	path := field.NewPath("schema", "openAPIV3Schema")
	if errs := structuralschema.ValidateStructural(path, s.structural); len(errs) > 0 {
		return nil, fmt.Errorf("version %s: %w", version.Name, errs.ToAggregate())
	}
	s.structural = s.structural.DeepCopy() // shares its defaults with the definition
	if errs, err := defaulting.ValidateDefaults(context.Background(), path, s.structural, true, false); err != nil {
		return nil, fmt.Errorf("version %s: %w", version.Name, err)
	} else if len(errs) > 0 {
		return nil, fmt.Errorf("version %s: %w", version.Name, errs.ToAggregate())
	}
	if err := defaulting.PruneDefaults(s.structural); err != nil {
		return nil, fmt.Errorf("version %s: %w", version.Name, err)
	}
	if s.validator, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("version %s: %w", version.Name, err)
	}
	if status, ok := internal.OpenAPIV3Schema.Properties["status"]; ok && version.Subresources != nil &&
		version.Subresources.Status != nil {
		if s.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return nil, fmt.Errorf("version %s: %w", version.Name, err)
		}
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s, nil
}

// defaults prunes unknown fields and sets defaults.
func (s *crdSchema) defaults(content map[string]any) error {
	return s.decode(content, true)
}

// coerce prunes unknown fields.
func (s *crdSchema) coerce(content map[string]any) error {
	return s.decode(content, false)
}

func (s *crdSchema) decode(content map[string]any, withDefaults bool) error {
	meta, found, err := objectmeta.GetObjectMeta(content, false)
	if err != nil {
		return err
	}
	apiVersion, kind := content["apiVersion"], content["kind"]
	pruning.Prune(content, s.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(content, s.structural)
	if err := objectmeta.Coerce(nil, content, s.structural, false, false); err != nil {
		return err
	}
	if withDefaults {
		defaulting.Default(content, s.structural)
	}
	content["apiVersion"], content["kind"] = apiVersion, kind
	if found {
		return objectmeta.SetObjectMeta(content, meta)
	}
	return nil
}

// validate returns the problems of content that is created, in addition to the given problems of its metadata.
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go: Validate
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: Validate
func (s *crdSchema) validate(content map[string]any, found bool) field.ErrorList {
	errs := inOrder(validation.ValidateCustomResource(nil, content, s.validator))
	errs = append(errs, s.validateScale(content, false)...)
	errs = append(errs, inOrder(objectmeta.Validate(context.Background(), nil, content, s.structural, false))...)
	errs = append(errs, inOrder(listtype.ValidateListSetsAndMaps(nil, s.structural, content))...)
	return s.checkRules(errs, found, content, nil)
}

// validateUpdate returns the problems of content that replaces old content. Problems that the old content has are
// accepted.
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go: ValidateUpdate
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go: ValidateStatusUpdate
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: ValidateUpdate
func (s *crdSchema) validateUpdate(content, old map[string]any, status, found bool) field.ErrorList {
	correlated := common.NewCorrelatedObject(content, old, &model.Structural{Structural: s.structural})
	var errs field.ErrorList
	if !status {
		errs = inOrder(
			validation.ValidateCustomResourceUpdate(nil, content, old, s.validator, validation.WithRatcheting(correlated)),
		)
		errs = append(errs, inOrder(objectmeta.Validate(context.Background(), nil, content, s.structural, false))...)
	} else if value, ok := content["status"]; ok {
		errs = inOrder(validation.ValidateCustomResourceUpdate(
			field.NewPath("status"), value, old["status"], s.status, validation.WithRatcheting(correlated.Key("status"))))
	}
	errs = append(errs, s.validateScale(content, status)...)
	if lists := listtype.ValidateListSetsAndMaps(nil, s.structural, content); len(lists) > 0 &&
		len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) == 0 {
		errs = append(errs, inOrder(lists)...)
	}
	return s.checkRules(errs, found, content, old, cel.WithRatcheting(correlated))
}

// checkRules adds the problems that CEL rules find. Rules are not evaluated if other problems prevent it.
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: Validate, hasBlockingErr
func (s *crdSchema) checkRules(
	errs field.ErrorList, found bool, content, old map[string]any, options ...cel.Option,
) field.ErrorList {
	if s.rules == nil {
		return errs
	}
	if found || preventsRules(errs) {
		return append(errs, field.Invalid(nil, nil,
			"some validation rules were not checked because the object was invalid; correct the existing errors to complete "+
				"validation"))
	}
	var before any
	if old != nil {
		before = old
	}
	violations, _ := s.rules.Validate(
		context.Background(), nil, s.structural, content, before, celconfig.RuntimeCELCostBudget, options...,
	)
	return append(errs, inOrder(violations)...)
}

// preventsRules reports whether a problem prevents the evaluation of rules.
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: hasBlockingErr
func preventsRules(errs field.ErrorList) bool {
	return slices.ContainsFunc(errs, func(err *field.Error) bool {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return true
		}
		return false
	})
}

// validateScale returns the problems of the fields in the scale subresource.
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go: ValidateScaleSpec
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go: ValidateScaleStatus
func (s *crdSchema) validateScale(content map[string]any, status bool) field.ErrorList {
	if s.scale == nil {
		return nil
	}
	var errs field.ErrorList
	replicas := []string{s.scale.SpecReplicas, s.scale.StatusReplicas}
	if status {
		replicas = replicas[1:]
	}
	for _, path := range replicas {
		n, _, err := unstructured.NestedInt64(content, pathElements(path)...)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(field.NewPath(path), n, err.Error()))
		case n < 0:
			errs = append(errs, field.Invalid(field.NewPath(path), n, "should be a non-negative integer"))
		case n > math.MaxInt32:
			errs = append(
				errs, field.Invalid(field.NewPath(path), n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)),
			)
		}
	}
	if path := s.scale.Selector; path != "" {
		if text, _, err := unstructured.NestedString(content, pathElements(path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(path), text, err.Error()))
		}
	}
	return errs
}

func pathElements(path string) []string {
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}

// inOrder sorts the errors of a validator, because validators visit the properties of an object in random order. Errors
// are sorted as in the schema: first problems of the object, then the problems of its properties, then missing
// properties.
func inOrder(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		x, y := strings.Split(a.Field, "."), strings.Split(b.Field, ".")
		for i := 0; ; i++ {
			missing := func(err *field.Error, path []string) bool {
				return err.Type == field.ErrorTypeRequired && i == len(path)-1
			}
			switch missX, missY := missing(a, x), missing(b, y); {
			case i == len(x) || i == len(y):
				return cmp.Compare(len(x), len(y))
			case missX && missY:
				return 0
			case missX:
				return 1
			case missY:
				return -1
			case x[i] != y[i]:
				return cmp.Compare(x[i], y[i])
			}
		}
	})
	return errs
}
