// SPDX-License-Identifier: Apache-2.0

// Package conditions has the rules of the API server for the conditions of a status. The schema of each custom resource
// with a list of metav1.Condition has them, and one condition that breaks a rule makes the server refuse the whole
// status.
package conditions

import (
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The limits are the limits of metav1.Condition, in bytes.
const (
	maxReason  = 1024
	maxMessage = 32768
)

// mark ends a text that was cut.
const mark = "…"

// noReason is the reason of a condition without one.
const noReason = "Unspecified"

// Mend returns the condition with a reason and a message that the API server accepts. It cuts a long message, and
// replaces what is not allowed in a reason: "not found" becomes "NotFound".
func Mend(c metav1.Condition) metav1.Condition {
	c.Message = Cut(c.Message, maxMessage)
	c.Reason = reason(c.Reason)
	return c
}

// Cut returns the text with at most that number of bytes. It cuts between two characters, and marks the end.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(mark)], "") + mark
}

// isValid reports whether a reason matches ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$.
func isValid(reason string) bool {
	for i := range len(reason) {
		c := reason[i]
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '_'):
		case i > 0 && i < len(reason)-1 && (c == ',' || c == ':'):
		default:
			return false
		}
	}
	return reason != "" && len(reason) <= maxReason
}

func reason(text string) string {
	if isValid(text) {
		return text
	}
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_,:", r)
	})
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	mended := strings.TrimLeft(strings.Join(words, ""), "0123456789_,:")
	mended = strings.TrimRight(mended[:min(len(mended), maxReason)], ",:")
	if mended == "" {
		return noReason
	}
	return mended
}

// Validate returns what the API server refuses of conditions that are written. It ignores transition times, and those
// conditions that are stored already.
func Validate(conditions, stored []metav1.Condition, path *field.Path) field.ErrorList {
	errs := field.ErrorList{}
	for i, c := range conditions {
		if !isIn(c, stored) {
			c.LastTransitionTime = metav1.Unix(1, 0)
			errs = append(errs, validation.ValidateCondition(c, path.Index(i))...)
		}
	}
	return errs
}

func isIn(c metav1.Condition, list []metav1.Condition) bool {
	for _, other := range list {
		if c.Type == other.Type && c.Status == other.Status && c.Reason == other.Reason && c.Message == other.Message {
			return true
		}
	}
	return false
}
