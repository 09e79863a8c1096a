// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"
	"slices"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImmutableFields returns the paths of the fields because of which the API server refused an update, for example
// "spec.selector", sorted. It returns nil unless every cause of the error is that a field cannot change: the update
// would still be refused for another cause. It knows the texts of built-in kinds, and validation rules of custom
// resources whose text ends with "immutable" or that are self == oldSelf without a text.
func ImmutableFields(err error) []string {
	status := apierrs.APIStatus(nil)
	if !apierrs.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if !saysImmutable(cause) {
			return nil
		}
		fields = append(fields, cause.Field)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// saysImmutable reports whether a field cannot change. The text of an invalid value begins with the value, which can
// contain any text, so only its end is compared.
func saysImmutable(cause metav1.StatusCause) bool {
	switch cause.Type {
	case metav1.CauseTypeFieldValueInvalid:
		return slices.ContainsFunc([]string{
			"immutable", ": may not change once set", ": failed rule: self == oldSelf", ": failed rule: oldSelf == self",
		}, func(end string) bool { return strings.HasSuffix(cause.Message, end) })
	case metav1.CauseTypeForbidden:
		detail, ok := strings.CutPrefix(cause.Message, "Forbidden: ")
		if !ok {
			return false
		}
		detail, _, _ = strings.Cut(detail, "\n") // a difference follows
		return strings.Contains(detail, " is immutable") || strings.HasPrefix(detail, "may not be changed") ||
			strings.HasPrefix(detail, "updates to ") && strings.Contains(detail, " forbidden") ||
			strings.HasPrefix(detail, "pod updates may not change ")
	}
	return false
}
