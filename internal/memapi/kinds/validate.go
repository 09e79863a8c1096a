// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	metaPath   = field.NewPath("metadata")
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
)

// nameOf returns the rule for the names of a kind.
// Upstream: pkg/apis/apps/validation/validation.go: ValidateStatefulSetName
// Upstream: pkg/apis/rbac/validation/validation.go: ValidateRBACName
func nameOf(kind string) validation.ValidateNameFunc {
	switch kind {
	case "Namespace", "StatefulSet", "Service":
		return validation.NameIsDNSLabel
	case "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding",
		"PriorityLevelConfiguration", "FlowSchema", "CertificateSigningRequest":
		return func(name string, prefix bool) []string {
			if prefix {
				return content.IsPathSegmentPrefix(name)
			}
			return content.IsPathSegmentName(name)
		}
	}
	return validation.NameIsDNSSubdomain
}

// inMapOrder sorts errors about the entries of a map, which validators visit in random order.
func inMapOrder(errs field.ErrorList) field.ErrorList {
	for i := 0; i < len(errs); {
		end := i + 1
		for end < len(errs) && errs[end].Field == errs[i].Field {
			end++
		}
		switch of := errs[i].Field[strings.LastIndex(errs[i].Field, ".")+1:]; of {
		case "labels", "annotations", "selector", "nodeSelector", "matchLabels":
			slices.SortStableFunc(errs[i:end], func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
		}
		i = end
	}
	return errs
}

// qualifiedFinalizers refuses finalizers of built-in kinds without a domain. A server has this rule for the kinds of
// the module k8s.io/kubernetes: the finalizer that it adds to CustomResourceDefinitions has no domain.
// Upstream: pkg/apis/core/validation/validation.go: validateKubeFinalizerName
func qualifiedFinalizers(obj metav1.Object) field.ErrorList {
	if _, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		return nil
	}
	var errs field.ErrorList
	for i, name := range obj.GetFinalizers() {
		switch name {
		case "kubernetes", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			continue
		}
		if !strings.Contains(name, "/") {
			errs = append(
				errs,
				field.Invalid(
					metaPath.Child("finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified",
				),
			)
		}
	}
	return errs
}

// notNegative checks an optional number.
// Upstream: k8s.io/apimachinery/pkg/api/validation/generic.go: ValidateNonnegativeField
func notNegative[N int32 | int64](n *N, at *field.Path) field.ErrorList {
	if n == nil {
		return nil
	}
	return validation.ValidateNonnegativeField(int64(*n), at)
}

// invalid returns an error for each message about a value.
func invalid(at *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(at, value, message))
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: ValidateDNS1123Label
func dnsLabel(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return invalid(at, name, utilvalidation.IsDNS1123Label(name))
}

// oneOf checks that a value is one of the given ones. An empty value is missing.
func oneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

// selects checks a selector, and that it selects the labels of a template. The error about an empty selector contains
// its type. A server does not validate the template if the selector is invalid.
// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentSpec, ValidateReplicaSetSpec
// Upstream: pkg/apis/apps/validation/validation.go: ValidateStatefulSetSpec
func selects(selector *metav1.LabelSelector, template map[string]string, of string) (errs field.ErrorList, valid bool) {
	at := specPath.Child("selector")
	if selector == nil {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, at)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(at, selector, "empty selector is invalid for "+of))
		}
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	switch {
	case err != nil && of == "statefulset":
		return append(errs, field.Invalid(at, selector, "")), false
	case err != nil:
		return append(errs, field.Invalid(at, selector, "invalid label selector")), false
	case !compiled.Empty() && !compiled.Matches(labels.Set(template)):
		errs = append(
			errs,
			field.Invalid(
				specPath.Child("template", "metadata", "labels"), template, "`selector` does not match template `labels`",
			),
		)
	}
	return errs, true
}

// change is a field of a spec that cannot change.
type change struct {
	name        string
	new, before any
}

// Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateImmutableField
func immutable(changes ...change) field.ErrorList {
	var errs field.ErrorList
	for _, c := range changes {
		errs = append(errs, validation.ValidateImmutableField(c.new, c.before, specPath.Child(c.name))...)
	}
	return errs
}

// validateIntOrPercent checks an optional number or percentage.
// Upstream: pkg/apis/apps/validation/validation.go: ValidatePositiveIntOrPercent
func validateIntOrPercent(value *intstr.IntOrString, at *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if value.Type == intstr.Int {
		return validation.ValidateNonnegativeField(int64(value.IntVal), at)
	}
	return invalid(at, *value, utilvalidation.IsValidPercent(value.StrVal))
}

// Upstream: pkg/apis/apps/validation/validation.go: IsNotMoreThan100Percent
func atMost100Percent(value *intstr.IntOrString, at *field.Path) field.ErrorList {
	if value == nil || value.Type == intstr.Int || percent(value) <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *value, "must not be greater than 100%")}
}

// percent returns the percentage of a number or percentage.
// Upstream: pkg/apis/apps/validation/validation.go: getIntOrPercentValue
func percent(value *intstr.IntOrString) int {
	if value.Type == intstr.Int {
		return int(value.IntVal)
	}
	n := intstr.Parse(strings.TrimSuffix(value.StrVal, "%"))
	return int(n.IntVal)
}
