"""Operations with a window that slides over an image: convolution, pooling, unfolding; and resizing by interpolation.

``window.py`` defines where a window stops and the elements that it covers there. Each operation is a linear map of these
elements, and its gradient the adjoint of the map.
"""
