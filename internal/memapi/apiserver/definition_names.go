// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// definitionNames are the names that a definition has. Two definitions of a group cannot have the same name: the one
// that is later does not get it.
type definitionNames struct {
	accepted apiextensionsv1.CustomResourceDefinitionNames
	// condition is the condition NamesAccepted.
	condition apiextensionsv1.CustomResourceDefinitionCondition
}

// serves reports whether a definition is served: all its names are accepted, or they were before they changed.
func serves(crd *apiextensionsv1.CustomResourceDefinition, names definitionNames) bool {
	return names.condition.Status == apiextensionsv1.ConditionTrue ||
		apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
}

// withNames returns a definition with these names.
func withNames(
	crd *apiextensionsv1.CustomResourceDefinition, names apiextensionsv1.CustomResourceDefinitionNames,
) *apiextensionsv1.CustomResourceDefinition {
	if slices.Equal(crd.Spec.Names.ShortNames, names.ShortNames) && crd.Spec.Names.Singular == names.Singular &&
		crd.Spec.Names.ListKind == names.ListKind {
		return crd // the plural and the kind of a definition that is served cannot change
	}
	crd = crd.DeepCopy()
	crd.Spec.Names, crd.UID = names, "" // what is compiled is not from the generation
	return crd
}

// acceptNames returns the names that each definition gets, by the names of the definitions. Definitions keep the names
// that they have. The reasons and messages are the same as on a real server.
func acceptNames(all []*apiextensionsv1.CustomResourceDefinition) map[string]definitionNames {
	names := map[string]definitionNames{}
	for _, crd := range all {
		names[crd.Name] = definitionNames{accepted: crd.Status.AcceptedNames}
	}
	for _, crd := range all {
		resources, kinds := map[string]bool{}, map[string]bool{}
		for _, other := range all {
			if has := names[other.Name].accepted; other.Spec.Group == crd.Spec.Group {
				for _, name := range append([]string{has.Plural, has.Singular}, has.ShortNames...) {
					resources[name] = true
				}
				kinds[has.Kind], kinds[has.ListKind] = true, true
			}
		}
		names[crd.Name] = acceptNamesOf(crd, resources, kinds)
	}
	return names
}

func acceptNamesOf(crd *apiextensionsv1.CustomResourceDefinition, resources, kinds map[string]bool) definitionNames {
	requested, got := crd.Spec.Names, definitionNames{accepted: *crd.Status.AcceptedNames.DeepCopy()}
	got.condition = apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts",
		Message: "no conflicts found",
	}
	refuse := func(reason string, names ...string) {
		texts := make([]string, len(names))
		for i, name := range names {
			texts[i] = fmt.Sprintf("%q is already in use", name)
		}
		got.condition.Status, got.condition.Reason = apiextensionsv1.ConditionFalse, reason
		if got.condition.Message = strings.Join(texts, ", "); len(texts) > 1 {
			got.condition.Message = "[" + got.condition.Message + "]"
		}
	}
	accept := func(reason, requested string, accepted *string, used map[string]bool) {
		if requested != *accepted && used[requested] {
			refuse(reason, requested)
			return
		}
		*accepted = requested
	}
	accept("PluralConflict", requested.Plural, &got.accepted.Plural, resources)
	accept("SingularConflict", requested.Singular, &got.accepted.Singular, resources)
	if taken := slices.DeleteFunc(slices.Clone(requested.ShortNames), func(name string) bool {
		return !resources[name] || slices.Contains(got.accepted.ShortNames, name)
	}); len(taken) > 0 {
		refuse("ShortNamesConflict", taken...)
	} else {
		got.accepted.ShortNames = requested.ShortNames
	}
	accept("KindConflict", requested.Kind, &got.accepted.Kind, kinds)
	accept("ListKindConflict", requested.ListKind, &got.accepted.ListKind, kinds)
	got.accepted.Categories = requested.Categories
	return got
}
