package page

// PictureOf is for tests from outside, which have fleets that are made up.
var PictureOf = pictureOf
