// SPDX-License-Identifier: Apache-2.0

package call

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DryRun returns the dry runs that the options of a write request.
func (c *Call) DryRun() []string {
	switch opts := c.Options.(type) {
	case []client.CreateOption:
		return (&client.CreateOptions{}).ApplyOptions(opts).DryRun
	case []client.UpdateOption:
		return (&client.UpdateOptions{}).ApplyOptions(opts).DryRun
	case []client.PatchOption:
		return (&client.PatchOptions{}).ApplyOptions(opts).DryRun
	case []client.ApplyOption:
		return (&client.ApplyOptions{}).ApplyOptions(opts).DryRun
	case []client.DeleteOption:
		return (&client.DeleteOptions{}).ApplyOptions(opts).DryRun
	case []client.DeleteAllOfOption:
		return (&client.DeleteAllOfOptions{}).ApplyOptions(opts).DryRun
	case []client.SubResourceCreateOption:
		return (&client.SubResourceCreateOptions{}).ApplyOptions(opts).DryRun
	case []client.SubResourceUpdateOption:
		return (&client.SubResourceUpdateOptions{}).ApplyOptions(opts).DryRun
	case []client.SubResourcePatchOption:
		return (&client.SubResourcePatchOptions{}).ApplyOptions(opts).DryRun
	case []client.SubResourceApplyOption:
		return (&client.SubResourceApplyOptions{}).ApplyOpts(opts).DryRun
	}
	return nil
}

// Written returns the object that an update or a patch sends, and that receives the response: the body in the options
// of a subresource, or the object itself.
func (c *Call) Written() client.Object {
	var body client.Object
	switch opts := c.Options.(type) {
	case []client.SubResourceUpdateOption:
		body = (&client.SubResourceUpdateOptions{}).ApplyOptions(opts).SubResourceBody
	case []client.SubResourcePatchOption:
		body = (&client.SubResourcePatchOptions{}).ApplyOptions(opts).SubResourceBody
	}
	if body != nil {
		return body
	}
	return c.Object
}

// Prepend adds an option to a write before the options of the caller, which replace it. It changes nothing if the verb
// does not have the option.
func (c *Call) Prepend(option any) { c.insert(0, option) }

// Append adds an option to a write after the options of the caller, which it replaces. It changes nothing if the verb
// does not have the option.
func (c *Call) Append(option any) { c.insert(-1, option) }

func (c *Call) insert(at int, option any) {
	switch opts := c.Options.(type) {
	case []client.CreateOption:
		c.Options = inserted(opts, at, option)
	case []client.UpdateOption:
		c.Options = inserted(opts, at, option)
	case []client.PatchOption:
		c.Options = inserted(opts, at, option)
	case []client.ApplyOption:
		c.Options = inserted(opts, at, option)
	case []client.DeleteOption:
		c.Options = inserted(opts, at, option)
	case []client.DeleteAllOfOption:
		c.Options = inserted(opts, at, option)
	case []client.SubResourceCreateOption:
		c.Options = inserted(opts, at, option)
	case []client.SubResourceUpdateOption:
		c.Options = inserted(opts, at, option)
	case []client.SubResourcePatchOption:
		c.Options = inserted(opts, at, option)
	case []client.SubResourceApplyOption:
		c.Options = inserted(opts, at, option)
	}
}

// inserted returns the options of a caller, which are not changed, with one more: at the end if at is negative.
func inserted[O any](opts []O, at int, option any) []O {
	added, ok := option.(O)
	if !ok {
		return opts
	}
	if at < 0 {
		at = len(opts)
	}
	return slices.Insert(slices.Clone(opts), at, added)
}
