// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/objects/nilcheck"
)

// maxFieldOwner is the limit of the API server for names of field managers.
const maxFieldOwner = 128

// fieldOwnerPrefix begins the default field owners.
const fieldOwnerPrefix = "trueup/"

// programSuffix ends the default field owners of this program. Two programs that reconcile one kind must have different
// field owners, and the versions of one program the same. So it is derived from the path of the Go module of the main
// package, without its major version. It is "" if the path is unknown: some build systems do not record it.
var programSuffix = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path == "" {
		return ""
	}
	return "@" + shortHash(majorVersion.ReplaceAllString(info.Main.Path, ""))
})

// majorVersion is the end of the path of a module that is not of the first major version.
var majorVersion = regexp.MustCompile(`[./]v\d+$`)

// shortHash returns eight hexadecimal digits.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// fieldOwner returns the name under which the API server records the fields that a root reconciler writes to children.
// It says which objects the root has made. So it does not depend on names that an author may change: not on the name of
// a reconciler, nor on the file name of the program, which is `manager` for many programs. It returns "" outside of a
// root reconciler.
func fieldOwner(ctx context.Context) string {
	s := scopeFrom(ctx)
	if s.originalConfig == nil || s.originalConfig.Client == nil || nilcheck.IsNilPointer(s.originalResourceType) {
		return ""
	}
	if owner := s.originalConfig.FieldOwner; owner != "" {
		return owner
	}
	gvk, err := s.originalConfig.GroupVersionKindFor(s.originalResourceType)
	if err != nil {
		return ""
	}
	if s.single {
		return limitFieldOwner(ofKind(gvk.GroupKind()) + "/" + s.request.String() + programSuffix())
	}
	return DefaultFieldOwner(gvk.GroupKind())
}

// DefaultFieldOwner returns the name under which a [ResourceReconciler] in this program writes the children of
// resources of a kind, if [Config.FieldOwner] is not set. Tests need it for given objects that are in sync.
func DefaultFieldOwner(resource schema.GroupKind) string {
	return limitFieldOwner(ofKind(resource) + programSuffix())
}

func ofKind(kind schema.GroupKind) string {
	owner := fieldOwnerPrefix + strings.ToLower(kind.Kind)
	if kind.Group != "" {
		owner += "." + kind.Group
	}
	return owner
}

// isDefaultFieldOwner reports whether a name is a default field owner of a root in this program.
func isDefaultFieldOwner(name string) bool {
	return strings.HasPrefix(name, fieldOwnerPrefix) && strings.HasSuffix(name, programSuffix())
}

// limitFieldOwner replaces the end of a name that is too long with a hash.
func limitFieldOwner(owner string) string {
	if len(owner) <= maxFieldOwner {
		return owner
	}
	end := "-" + shortHash(owner)
	return owner[:maxFieldOwner-len(end)] + end
}

// WithFormerFieldOwners returns a copy of the config that knows the field owners under which earlier versions of this
// controller wrote: objects that they made count as made by this controller, see [ChildReconciler]. Without a name of
// its own, a program writes as the file name of its binary, for example `manager`. Do not name a field owner that
// another program uses: its objects could be deleted.
func (c Config) WithFormerFieldOwners(owners ...string) Config {
	former := append(slices.Clone(c.formerFieldOwners()), owners...)
	c.formerOwners = &former
	return c
}

func (c Config) formerFieldOwners() []string {
	if c.formerOwners == nil {
		return nil
	}
	return *c.formerOwners
}
