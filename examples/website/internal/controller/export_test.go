// SPDX-License-Identifier: Apache-2.0

package controller

// What one step hands to the next, for cases that test one step alone.
var (
	ThemeStash   = themeStash
	FilesStash   = filesStash
	AddressStash = addressStash
	Pages        = pages
)
