// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Report is the difference between a role, what reconcilers declare, and what a run used.
type Report struct {
	// NotGranted are declared or used, and the role does not grant them.
	NotGranted []Permission
	// NotDeclared are used, and no reconciler declares them.
	NotDeclared []Permission
	// NotUsed are granted, and the run did not use them. A permission for a rare case is often not used.
	NotUsed []Permission
	// NotNeeded are granted, and neither declared nor used.
	NotNeeded []Permission
}

// Check compares the rules of a role with the permissions that reconcilers declare and the permissions that a run used.
// Either may be nil. A "*" in a rule grants everything.
func Check(role []rbacv1.PolicyRule, declared, used Permissions) Report {
	granted, report := FromRules(role), Report{}
	needed := Permissions{}
	for _, set := range []Permissions{declared, used} {
		for p := range set {
			needed[p] = true
		}
	}
	for _, p := range needed.sorted() {
		if !granted.grants(p) {
			report.NotGranted = append(report.NotGranted, p)
		}
		if declared != nil && used[p] && !declared[p] {
			report.NotDeclared = append(report.NotDeclared, p)
		}
	}
	for _, p := range granted.sorted() {
		if used != nil && !coversAny(p, used) {
			report.NotUsed = append(report.NotUsed, p)
		}
		if !coversAny(p, needed) {
			report.NotNeeded = append(report.NotNeeded, p)
		}
	}
	return report
}

// grants reports whether the set contains a permission, possibly with a "*".
func (p Permissions) grants(permission Permission) bool {
	if p[permission] {
		return true
	}
	for granted := range p {
		if granted.covers(permission) {
			return true
		}
	}
	return false
}

func coversAny(granted Permission, set Permissions) bool {
	for p := range set {
		if granted.covers(p) {
			return true
		}
	}
	return false
}

// covers reports whether a granted permission, which may contain "*", includes another one.
func (p Permission) covers(other Permission) bool {
	return matches(p.Group, other.Group) && matches(p.Verb, other.Verb) && coversResource(p.Resource, other.Resource)
}

func matches(granted, needed string) bool { return granted == "*" || granted == needed }

// coversResource also accepts "*/status", which grants the status of all resources.
func coversResource(granted, needed string) bool {
	if matches(granted, needed) {
		return true
	}
	_, of, ok := strings.Cut(needed, "/")
	return ok && granted == "*/"+of
}

// Err returns an error that lists the permissions that the role does not grant, or nil.
func (r Report) Err() error {
	errs := make([]error, len(r.NotGranted))
	for i, p := range r.NotGranted {
		errs[i] = fmt.Errorf("the role does not grant: %s", p)
	}
	return errors.Join(errs...)
}

// String lists the whole report, one permission per line.
func (r Report) String() string {
	var b strings.Builder
	for _, part := range []struct {
		title       string
		permissions []Permission
	}{
		{"not granted", r.NotGranted},
		{"used but not declared", r.NotDeclared},
		{"granted but not used", r.NotUsed},
		{"granted but neither declared nor used", r.NotNeeded},
	} {
		for _, p := range part.permissions {
			fmt.Fprintf(&b, "%s: %s\n", part.title, p)
		}
	}
	return b.String()
}
